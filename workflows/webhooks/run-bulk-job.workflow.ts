import { CancellationScope, isCancellation, proxyActivities } from '@temporalio/workflow';
import type { WebhookJobActivities } from '../../activities/webhook-jobs.activities.ts';
import type { RunBulkJobInput } from './run-bulk-job.contract.ts';

const { changeDeliveries } = proxyActivities<WebhookJobActivities>({
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '5 seconds', maximumInterval: '1 minute' },
});
const { stopJob } = proxyActivities<WebhookJobActivities>({
  startToCloseTimeout: '30 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
});

/**
 * Replays events to an endpoint, or gives up what waits for it, in batches. The job's row knows how far it came, so the
 * activity may begin again anywhere. Canceled, the batch under way is the last one.
 *
 * @returns what was done, for the Temporal UI.
 */
export async function runBulkJob({ jobId }: RunBulkJobInput): Promise<string> {
  try {
    return await changeDeliveries({ jobId });
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => stopJob({ jobId }));
    throw error;
  }
}
