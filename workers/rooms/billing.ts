import { type BillingActivities, createBillingActivities } from '../../activities/billing.activities.ts';
import { createBillingWork } from '../../domain/billing/billing-services.ts';
import {
  deleteOldMeterReports,
  deleteOldStripeEvents,
  overdueGraces,
  overdueReadBacks,
  requestStaleReadBacks,
} from '../../domain/billing/overdue-billing.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

/** Without billing there are no runs but those of the schedules. */
const WITHOUT_BILLING: Partial<BillingActivities> = {
  expireCheckout: async () => 'none',
  requestReadBacks: async () => 0,
  settleMeteredHours: async () => 0,
  reportMeteredHours: async () => ({ reported: 0, refused: 0 }),
};

export const billingRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: ({ services: { notifications, suspensions }, ...dependencies }) => {
      if (!dependencies.config.BILLING_ENABLED) return WITHOUT_BILLING;
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
          sweeps: {
            stripeEvents: () => deleteOldStripeEvents(database),
            meterReports: () => deleteOldMeterReports(database),
          },
        }
      : {},
};
