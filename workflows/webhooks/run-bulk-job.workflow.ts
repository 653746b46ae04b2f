import { CancellationScope, isCancellation, proxyActivities } from '@temporalio/workflow';
import type { WebhookJobActivities } from '../../activities/webhook-jobs.activities.ts';
import { DATABASE_STEP } from '../database-step.ts';
import type { RunBulkJobInput } from './run-bulk-job.contract.ts';

const { processBulkJob } = proxyActivities<WebhookJobActivities>({
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '5 seconds', maximumInterval: '1 minute' },
});
const { stopBulkJob } = proxyActivities<WebhookJobActivities>(DATABASE_STEP);

/**
 * Replays events to an endpoint or cancels its pending deliveries, in batches. The job's row stores the progress, so the
 * activity can resume at any point. Canceling the run stops the job after the current batch.
 *
 * @returns a one-line result for the Temporal UI.
 */
export async function runBulkJob({ jobId }: RunBulkJobInput): Promise<string> {
  try {
    return await processBulkJob({ jobId });
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => stopBulkJob({ jobId }));
    throw error;
  }
}
