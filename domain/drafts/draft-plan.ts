import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import {
  RESCHEDULE_DRAFT,
  SEND_SCHEDULED_DRAFT,
  sendScheduledDraftWorkflowId,
  UNSCHEDULE_DRAFT,
} from '../../workflows/drafts/send-scheduled-draft.contract.ts';
import { MAIL_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Draft } from './draft.entity.ts';

/** Plans or re-plans the send: one run a plan, a change of time only tells the run. */
export function planSend(transaction: Transaction, outbox: Outbox, draft: Draft, sendAt: Date): void {
  const planned = draft.sendStatus === 'scheduled';
  draft.sendAt = sendAt;
  draft.sendStatus = 'scheduled';
  draft.sendError = null;
  if (!planned) draft.plan += 1;
  const signal = {
    workflowId: sendScheduledDraftWorkflowId(draft.id, draft.plan),
    signalName: RESCHEDULE_DRAFT,
    args: [sendAt.toISOString()],
  };
  outbox.enqueue(
    transaction,
    draft.organizationId,
    planned ? { signal } : { start: startOfPlan(draft, sendAt) },
  );
}

export function unplanSend(transaction: Transaction, outbox: Outbox, draft: Draft): void {
  draft.sendAt = null;
  draft.sendError = null;
  if (draft.sendStatus === 'scheduled') {
    outbox.enqueue(transaction, draft.organizationId, {
      signal: {
        workflowId: sendScheduledDraftWorkflowId(draft.id, draft.plan),
        signalName: UNSCHEDULE_DRAFT,
        args: [],
      },
    });
  }
  draft.sendStatus = 'draft';
}

/** The start of a plan's run; also what the reconciler uses for one that has lost its run. */
export function startOfPlan(
  draft: Pick<Draft, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'plan'>,
  sendAt: Date,
) {
  return {
    workflowType: SEND_SCHEDULED_DRAFT,
    workflowId: sendScheduledDraftWorkflowId(draft.id, draft.plan),
    taskQueue: MAIL_QUEUE,
    input: { draftId: draft.id, plan: draft.plan, sendAt: sendAt.toISOString() },
    searchAttributes: {
      OrgId: draft.organizationId,
      EnvId: draft.environmentId,
      InboxId: draft.inboxId,
      ResourceId: draft.id,
      Stage: 'scheduled',
    },
    summary: `Send draft ${draft.id} at ${sendAt.toISOString()}`,
  };
}
