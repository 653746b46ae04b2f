import type { OptionsOf } from '../../platform/options-of.ts';
import { createHealthService } from './health.service.ts';
import { createOutboxAdministrationService } from './outbox-administration.service.ts';
import { createScheduleAdministrationService } from './schedule-administration.service.ts';

type Options = OptionsOf<typeof createHealthService> &
  OptionsOf<typeof createOutboxAdministrationService> &
  OptionsOf<typeof createScheduleAdministrationService>;

/** The health of the service, and its schedules and outbox, which operators control. */
export function createMonitoring(options: Options) {
  return {
    health: createHealthService(options),
    outboxAdministration: createOutboxAdministrationService(options),
    scheduleAdministration: createScheduleAdministrationService(options),
  };
}
