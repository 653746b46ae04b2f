import { createStaffJobActivities } from '../../activities/staff-jobs.activities.ts';
import {
  createStaffJobRunner,
  overdueStaffJobs,
  purgeStaffJobs,
} from '../../domain/workflow-runs/staff-job-runner.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room, WorkerDependencies } from '../room.ts';

const createRunner = ({ database, outbox, workflowRuns: runs }: WorkerDependencies) =>
  createStaffJobRunner({ database, outbox, runs });

export const workflowRunsRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: (dependencies) =>
      createStaffJobActivities({ jobs: createRunner(dependencies), shares: dependencies.jobShares }),
  },
  maintenance: (dependencies) => ({
    overdue: [overdueStaffJobs(dependencies.database, createRunner(dependencies))],
    sweeps: { expiredStaffJobs: () => purgeStaffJobs(dependencies.database) },
  }),
};
