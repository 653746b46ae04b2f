import { createUsageAlertActivities } from '../../activities/usage-alerts.activities.ts';
import { isMetered } from '../../domain/billing/metered-counters.ts';
import { purgeUsageAlerts } from '../../domain/usage-alerts/purge-usage-alerts.ts';
import { createUsageCheckService } from '../../domain/usage-alerts/usage-check.service.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const usageAlertsRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ config, database, logger, services: { events, notifications } }) =>
      createUsageAlertActivities({
        usageChecks: createUsageCheckService({
          database,
          events,
          notifications,
          logger,
          ...(config.BILLING_ENABLED ? { isMetered } : {}),
        }),
      }),
  },
  maintenance: ({ database }) => ({ sweeps: { expiredUsageAlerts: () => purgeUsageAlerts(database) } }),
};
