import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  APPLY_RETENTION,
  applyRetentionWorkflowId,
} from '../../workflows/retention/apply-retention.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';

/** Starts a daily run, or the run that announces a policy change. */
export function buildRetentionStart(organizationId: string, episode: string): StartCommand {
  return {
    workflowType: APPLY_RETENTION,
    workflowId: applyRetentionWorkflowId(organizationId, episode),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.default, fairnessKey: organizationId },
    input: { organizationId },
    searchAttributes: { OrgId: organizationId, ResourceId: organizationId, Stage: 'reviewing' },
    summary: `Retention for ${organizationId}, ${episode}`,
  };
}
