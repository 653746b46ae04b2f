import { createWebhookJobActivities } from '../../activities/webhook-jobs.activities.ts';
import { createWebhookActivities } from '../../activities/webhooks.activities.ts';
import { createBulkJobRunner, overdueJobs } from '../../domain/webhooks/bulk-job-runner.ts';
import { cancelDelivery, createDeliveryService } from '../../domain/webhooks/delivery.service.ts';
import { holdForgottenDeliveries } from '../../domain/webhooks/hold-deliveries.ts';
import { overdueDeliveries } from '../../domain/webhooks/overdue-deliveries.ts';
import { releaseForgottenDeliveries } from '../../domain/webhooks/release-held-deliveries.ts';
import { releaseWithinLimits } from '../../domain/webhooks/release-over-limit.ts';
import { createEgress, egressOptions } from '../../platform/egress/egress.ts';
import { MAINTENANCE_QUEUE, WEBHOOKS_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const webhooksRoom: Room = {
  activities: {
    [WEBHOOKS_QUEUE]: ({ config, database, services: { secretBox, notifications } }) =>
      createWebhookActivities({
        deliveries: createDeliveryService({
          database,
          egress: createEgress(egressOptions(config)),
          secretBox,
          notifications,
          timeoutMs: config.WEBHOOK_TIMEOUT_MS,
          random: Math.random,
        }),
      }),
    [MAINTENANCE_QUEUE]: ({ database, outbox }) =>
      createWebhookJobActivities({ jobs: createBulkJobRunner({ database, outbox }) }),
  },
  maintenance: ({ database, outbox }) => ({
    overdue: [
      overdueDeliveries(database, { cancel: (id, episode) => cancelDelivery(database, id, episode) }),
      overdueJobs(database, createBulkJobRunner({ database, outbox })),
    ],
    sweeps: {
      heldDeliveries: () => holdForgottenDeliveries(database),
      releasedDeliveries: () => releaseForgottenDeliveries(database, outbox),
      deliveriesWithinLimit: () => releaseWithinLimits(database, outbox),
    },
  }),
};
