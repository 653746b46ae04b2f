import type { OptionsOf } from '../../platform/options-of.ts';
import { createStaffJobService } from './staff-job.service.ts';
import { createWorkflowRunService } from './workflow-run.service.ts';

/** Actions of staff on workflow runs. */
export function createWorkflowRuns(
  options: OptionsOf<typeof createWorkflowRunService> & OptionsOf<typeof createStaffJobService>,
) {
  return { workflowRuns: createWorkflowRunService(options), staffJobs: createStaffJobService(options) };
}
