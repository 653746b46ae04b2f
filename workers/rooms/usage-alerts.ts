import { createUsageActivities } from '../../activities/usage-alerts.activities.ts';
import { createUsageCheckService } from '../../domain/usage-alerts/usage-check.service.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const usageAlertsRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ database, logger, services: { events, notifications } }) =>
      createUsageActivities({
        usageChecks: createUsageCheckService({ database, events, notifications, logger }),
      }),
  },
};
