import { CancellationScope, isCancellation, proxyActivities } from '@temporalio/workflow';
import type { StaffJobActivities } from '../../activities/staff-jobs.activities.ts';
import { DATABASE_STEP } from '../database-step.ts';
import type { RunStaffJobInput } from './run-staff-job.contract.ts';

const { processStaffJob } = proxyActivities<StaffJobActivities>({
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: '1 minute',
  retry: { initialInterval: '5 seconds', maximumInterval: '1 minute' },
});
const { stopStaffJob } = proxyActivities<StaffJobActivities>(DATABASE_STEP);

/**
 * Acts on many runs for a staff member, in batches. The job's row stores the progress, so the activity can resume at any
 * point. Canceling the run stops the job after the current batch.
 *
 * @returns a one-line result for the Temporal UI.
 */
export async function runStaffJob({ jobId }: RunStaffJobInput): Promise<string> {
  try {
    return await processStaffJob({ jobId });
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => stopStaffJob({ jobId }));
    throw error;
  }
}
