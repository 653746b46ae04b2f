import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { RUN_STAFF_JOB, runStaffJobWorkflowId } from '../../workflows/staff-jobs/run-staff-job.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { StaffJob } from './staff-job.entity.ts';

export function buildStaffJobStart({
  id,
  staffId,
  action,
}: Pick<StaffJob, 'id' | 'staffId' | 'action'>): StartCommand {
  return {
    workflowType: RUN_STAFF_JOB,
    workflowId: runStaffJobWorkflowId(id),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.urgent, fairnessKey: staffId },
    input: { jobId: id },
    searchAttributes: { ResourceId: id, RelatedId: staffId, Stage: 'acting' },
    summary: `Staff job ${id}: ${action} many runs`,
  };
}
