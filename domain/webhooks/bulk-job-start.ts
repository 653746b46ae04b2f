import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import { RUN_BULK_JOB, runBulkJobWorkflowId } from '../../workflows/webhooks/run-bulk-job.contract.ts';
import type { BulkJob } from './bulk-job.entity.ts';

/** Operators find the run by endpoint (`ResourceId`) and job (`RelatedId`). */
export function buildBulkJobStart(
  job: Pick<BulkJob, 'id' | 'organizationId' | 'environmentId' | 'endpointId' | 'kind'>,
): StartCommand {
  return {
    workflowType: RUN_BULK_JOB,
    workflowId: runBulkJobWorkflowId(job.id),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.default, fairnessKey: job.organizationId },
    input: { jobId: job.id },
    searchAttributes: {
      OrgId: job.organizationId,
      EnvId: job.environmentId,
      ResourceId: job.endpointId,
      RelatedId: job.id,
      Stage: job.kind === 'replay' ? 'replaying' : 'canceling',
    },
    summary: `${job.kind === 'replay' ? 'Replay events to' : 'Cancel pending deliveries to'} ${job.endpointId}`,
  };
}
