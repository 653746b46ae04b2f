import { Context } from '@temporalio/activity';
import type { StaffJobRunner } from '../domain/workflow-runs/staff-job-runner.ts';
import { withApplicationFailures } from './failures.ts';

export type StaffJobActivities = ReturnType<typeof createStaffJobActivities>;

export function createStaffJobActivities({ jobs }: { jobs: StaffJobRunner }) {
  return {
    /** Processes batches until the job is done or stopped. */
    processStaffJob: ({ jobId }: { jobId: string }): Promise<string> =>
      withApplicationFailures(() => jobs.run(jobId, (matched) => Context.current().heartbeat(matched))),

    stopStaffJob: ({ jobId }: { jobId: string }): Promise<void> =>
      withApplicationFailures(() => jobs.stop(jobId)),
  };
}
