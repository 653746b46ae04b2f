import { Context } from '@temporalio/activity';
import type { BulkJobRunner } from '../domain/webhooks/bulk-job-runner.ts';
import { asFailure } from './failures.ts';

export type WebhookJobActivities = ReturnType<typeof createWebhookJobActivities>;

export function createWebhookJobActivities({ jobs }: { jobs: BulkJobRunner }) {
  return {
    /** Batch by batch until nothing is left, or somebody stopped the job. */
    changeDeliveries: ({ jobId }: { jobId: string }): Promise<string> =>
      asFailure(() => jobs.run(jobId, (soFar) => Context.current().heartbeat(soFar))),

    stopJob: ({ jobId }: { jobId: string }): Promise<void> =>
      asFailure(() => jobs.stop(jobId, 'Stopped by an operator.')),
  };
}
