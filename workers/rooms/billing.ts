import { createBillingActivities } from '../../activities/billing.activities.ts';
import { createBillingWork } from '../../domain/billing/billing-services.ts';
import {
  deleteOldStripeEvents,
  overdueGraces,
  overdueReadBacks,
  requestStaleReadBacks,
} from '../../domain/billing/overdue-billing.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const billingRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ services: { notifications, suspensions }, ...dependencies }) => {
      // Without billing there are no runs but those of the schedule.
      if (!dependencies.config.BILLING_ENABLED) return { requestReadBacks: async () => 0 };
      const { database, outbox } = dependencies;
      return createBillingActivities({
        database,
        ...createBillingWork({ ...dependencies, notifications, suspensions }),
        requestStaleReadBacks: (onProgress) => requestStaleReadBacks({ database, outbox }, onProgress),
      });
    },
  },
  maintenance: ({ config, database }) =>
    config.BILLING_ENABLED
      ? {
          overdue: [overdueReadBacks(database), overdueGraces(database)],
          sweeps: { stripeEvents: () => deleteOldStripeEvents(database) },
        }
      : {},
};
