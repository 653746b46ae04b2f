import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { PURGE_INBOX, purgeInboxWorkflowId } from '../../workflows/inboxes/purge-inbox.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { Inbox } from './inbox.entity.ts';

/** Also used by the reconciler when the run of a purge is missing. */
export function buildPurgeStart(inbox: Pick<Inbox, 'id' | 'organizationId' | 'environmentId'>): StartCommand {
  return {
    workflowType: PURGE_INBOX,
    workflowId: purgeInboxWorkflowId(inbox.id),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.default, fairnessKey: inbox.organizationId },
    input: { inboxId: inbox.id },
    searchAttributes: {
      OrgId: inbox.organizationId,
      EnvId: inbox.environmentId,
      InboxId: inbox.id,
      ResourceId: inbox.id,
      Stage: 'purging',
    },
    summary: `Purge ${inbox.id}`,
  };
}
