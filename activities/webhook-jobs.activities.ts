import type { BulkJobRunner } from '../domain/webhooks/bulk-job-runner.ts';
import { withApplicationFailures } from './failures.ts';
import { heartbeatBetweenSteps } from './heartbeats.ts';

export type WebhookJobActivities = ReturnType<typeof createWebhookJobActivities>;

export function createWebhookJobActivities({ jobs }: { jobs: BulkJobRunner }) {
  return {
    /** Processes batches until the job is done or stopped. */
    processBulkJob: ({ jobId }: { jobId: string }): Promise<string> =>
      withApplicationFailures(() => jobs.run(jobId, (deliveries) => heartbeatBetweenSteps(deliveries))),

    stopBulkJob: ({ jobId }: { jobId: string }): Promise<void> =>
      withApplicationFailures(() => jobs.stop(jobId, 'Stopped by an operator.')),
  };
}
