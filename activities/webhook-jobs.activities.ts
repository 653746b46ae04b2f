import type { BulkJobRunner } from '../domain/webhooks/bulk-job-runner.ts';
import { acquireBriefly, type FairShare, organizationHolder } from '../platform/concurrency/fair-share.ts';
import { withApplicationFailures } from './failures.ts';
import { heartbeatBetweenSteps } from './heartbeats.ts';

export type WebhookJobActivities = ReturnType<typeof createWebhookJobActivities>;

/** When a job tries again that found no slot. */
const BUSY_RETRY_MS = 5_000;

export function createWebhookJobActivities({ jobs, shares }: { jobs: BulkJobRunner; shares: FairShare }) {
  return {
    /** Processes batches until the job is done or stopped. */
    processBulkJob: ({ jobId }: { jobId: string }): Promise<string> =>
      withApplicationFailures(async () => {
        const holders = [organizationHolder((await jobs.findOrganization(jobId)) ?? '')];
        const release = await acquireBriefly(shares, { holders }, BUSY_RETRY_MS);
        return jobs.run(jobId, (deliveries) => heartbeatBetweenSteps(deliveries)).finally(release);
      }),

    stopBulkJob: ({ jobId }: { jobId: string }): Promise<void> =>
      withApplicationFailures(() => jobs.stop(jobId, 'Stopped by an operator.')),
  };
}
