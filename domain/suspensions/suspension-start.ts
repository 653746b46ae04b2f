import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  SETTLE_HELD_WORK,
  settleSuspensionWorkflowId,
} from '../../workflows/suspensions/settle-held-work.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { Suspension } from './suspension.entity.ts';

type StartedSuspension = Pick<Suspension, 'id' | 'organizationId' | 'targetType' | 'targetId' | 'reason'> & {
  liftedAt: Date | string | null;
};

/** Starts the run that rejects or releases the held work after a suspension, or its end. */
export function buildSuspensionStart(suspension: StartedSuspension): StartCommand {
  const { id, organizationId, targetId, targetType, reason } = suspension;
  const change = suspension.liftedAt === null ? 'suspended' : 'reinstated';
  return {
    workflowType: SETTLE_HELD_WORK,
    workflowId: settleSuspensionWorkflowId(id, change),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.urgent, fairnessKey: organizationId },
    input: { organizationId, suspension: { id, change } },
    searchAttributes: {
      OrgId: organizationId,
      ...(targetType === 'environment' ? { EnvId: targetId } : {}),
      ...(targetType === 'inbox' ? { InboxId: targetId } : {}),
      ResourceId: targetId,
      RelatedId: id,
      Stage: 'rejecting',
    },
    summary: `${targetId} ${change} for ${reason}`,
  };
}
