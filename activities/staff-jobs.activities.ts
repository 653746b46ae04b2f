import { Context } from '@temporalio/activity';
import type { StaffJobRunner } from '../domain/workflow-runs/staff-job-runner.ts';
import { acquireBriefly, type FairShare, type Holder } from '../platform/concurrency/fair-share.ts';
import { withApplicationFailures } from './failures.ts';

export type StaffJobActivities = ReturnType<typeof createStaffJobActivities>;

/** Staff share the jobs with organizations as if they were one. */
const STAFF: Holder = { kind: 'organization', id: 'staff' };
/** When a job tries again that found no slot. */
const BUSY_RETRY_MS = 5_000;

export function createStaffJobActivities({ jobs, shares }: { jobs: StaffJobRunner; shares: FairShare }) {
  return {
    /** Processes batches until the job is done or stopped. */
    processStaffJob: ({ jobId }: { jobId: string }): Promise<string> =>
      withApplicationFailures(async () => {
        const release = await acquireBriefly(shares, { holders: [STAFF] }, BUSY_RETRY_MS);
        return jobs.run(jobId, (matched) => Context.current().heartbeat(matched)).finally(release);
      }),

    stopStaffJob: ({ jobId }: { jobId: string }): Promise<void> =>
      withApplicationFailures(() => jobs.stop(jobId)),
  };
}
