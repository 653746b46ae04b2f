import { createWebhookJobActivities } from '../../activities/webhook-jobs.activities.ts';
import { createWebhookProbeActivities } from '../../activities/webhook-probes.activities.ts';
import { createWebhookActivities } from '../../activities/webhooks.activities.ts';
import { createAttemptShares } from '../../domain/webhooks/attempt-slots.ts';
import {
  createBulkJobRunner,
  overdueBulkJobs,
  purgeBulkJobs,
} from '../../domain/webhooks/bulk-job-runner.ts';
import {
  createDeliveryService,
  type DeliveryServiceOptions,
  overdueDeliveries,
} from '../../domain/webhooks/delivery.service.ts';
import { overdueProbes } from '../../domain/webhooks/endpoint-health.ts';
import { holdDeliveriesOfDisabledEndpoints } from '../../domain/webhooks/hold-deliveries.ts';
import { createProbeService } from '../../domain/webhooks/probe.service.ts';
import {
  releaseHeldForEnabledEndpoints,
  releaseOfRecoveredOrganizations,
  releaseSwitchedOffDeliveries,
} from '../../domain/webhooks/release-held-deliveries.ts';
import { releaseUsageLimitedForAll } from '../../domain/webhooks/release-usage-limited.ts';
import {
  createEgress,
  type Egress,
  type EgressResult,
  readEgressOptions,
} from '../../platform/egress/egress.ts';
import type { ServiceMetrics } from '../../platform/service-metrics.ts';
import { MAINTENANCE_QUEUE, WEBHOOKS_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const webhooksRoom: Room = {
  activities: {
    [WEBHOOKS_QUEUE]: ({ config, database, outbox, metrics, services: { secretBox, notifications } }) => {
      const options: DeliveryServiceOptions = {
        database,
        outbox,
        egress: countAttempts(createEgress(readEgressOptions(config)), metrics),
        secretBox,
        notifications,
        timeoutMs: config.WEBHOOK_TIMEOUT_MS,
        shares: createAttemptShares(config.WORKER_CONCURRENCY),
        random: Math.random,
      };
      return {
        ...createWebhookActivities({ deliveries: createDeliveryService(options) }),
        ...createWebhookProbeActivities({ probes: createProbeService(options) }),
      };
    },
    [MAINTENANCE_QUEUE]: ({ database, outbox, jobShares, services: { notifications } }) =>
      createWebhookJobActivities({
        jobs: createBulkJobRunner({ database, outbox, notifications }),
        shares: jobShares,
      }),
  },
  maintenance: ({ config, database, outbox }) => ({
    overdue: [overdueDeliveries(database), overdueProbes(database), overdueBulkJobs(database)],
    sweeps: {
      expiredBulkJobs: () => purgeBulkJobs(database, config.EVENT_RETENTION_DAYS),
      heldDeliveries: () => holdDeliveriesOfDisabledEndpoints(database),
      switchedOffDeliveries: () => releaseSwitchedOffDeliveries(database, outbox),
      recoveredDeliveries: () => releaseOfRecoveredOrganizations(database, outbox),
      releasedDeliveries: () => releaseHeldForEnabledEndpoints(database, outbox),
      deliveriesWithinLimit: () => releaseUsageLimitedForAll(database, outbox),
    },
  }),
};

/** Counts the outcomes of attempts, for the metrics. */
function countAttempts(
  { post }: Pick<Egress, 'post'>,
  { webhookAttempts }: Pick<ServiceMetrics, 'webhookAttempts'>,
): Pick<Egress, 'post'> {
  return {
    async post(url, request) {
      const result = await post(url, request);
      webhookAttempts.inc({ outcome: outcomeOf(result) });
      return result;
    },
  };
}

function outcomeOf(result: EgressResult): string {
  if (result.kind === 'blocked') return 'blocked';
  if (result.kind === 'failed') return 'unreachable';
  return result.status >= 200 && result.status < 300 ? 'delivered' : 'failed';
}
