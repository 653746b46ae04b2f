import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  APPLY_RETENTION,
  applyRetentionWorkflowId,
} from '../../workflows/retention/apply-retention.contract.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';

/** The start of a day's run, or of the one that announces a change. */
export function startOfRetention(organizationId: string, episode: string): StartCommand {
  return {
    workflowType: APPLY_RETENTION,
    workflowId: applyRetentionWorkflowId(organizationId, episode),
    taskQueue: MAINTENANCE_QUEUE,
    input: { organizationId },
    searchAttributes: { OrgId: organizationId, ResourceId: organizationId, Stage: 'reviewing' },
    summary: `Retention of ${organizationId}, ${episode}`,
  };
}
