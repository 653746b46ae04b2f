import type { Transaction } from '../../platform/database/database.ts';
import type { Attachment } from '../attachments/attachment.entity.ts';
import type { Scope } from '../identity/scope.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { findApprovalNeed } from '../outbound/check-send.ts';
import type { Draft } from './draft.entity.ts';
import { type ApprovalOptions, requestApproval } from './draft-approval.ts';
import { scheduleSend, unscheduleSend } from './draft-schedule.ts';

export interface PlannedSend {
  scope: Scope;
  inbox: Inbox;
  sendAt: Date;
  attachments: readonly Attachment[];
}

/** Schedules a draft, or requests the approval that it needs first. */
export async function planSend(
  transaction: Transaction,
  options: ApprovalOptions,
  draft: Draft,
  { scope, inbox, sendAt, attachments }: PlannedSend,
): Promise<void> {
  const { actor } = scope;
  const { threadId, inReplyTo, forwardedMessageId } = draft;
  const messageIds = [inReplyTo, forwardedMessageId].filter((id) => id !== null);
  const target = { threadId, messageIds };
  const need = await findApprovalNeed(transaction.db, { scope, inbox, content: draft, target });
  if (need.needsApproval) {
    const { alarmMessageId } = need;
    const request = { inbox, actor, attachmentCount: attachments.length, alarmMessageId };
    await requestApproval(transaction, options, draft, request);
    draft.sendAt = sendAt;
    return;
  }
  Object.assign(draft, { requestedByKind: actor.kind, requestedById: actor.id } satisfies Partial<Draft>);
  const isUnchanged = draft.sendStatus === 'scheduled' && draft.sendAt?.getTime() === sendAt.getTime();
  if (!isUnchanged) scheduleSend(transaction, options.outbox, draft, sendAt);
}

export interface ChangedDraft {
  scope: Scope;
  inbox: Inbox;
  /** Undefined if the time was not changed. */
  sendAt: Date | null | undefined;
  attachments: readonly Attachment[];
  /** API names. */
  changedFields: string[];
}

/**
 * Plans the send of a changed draft. The change voids an approval or a request for approval, because neither covers the
 * new version. The credential that last changed a scheduled draft is the one that sends it.
 */
export async function replanSend(
  transaction: Transaction,
  options: ApprovalOptions,
  draft: Draft,
  { scope, inbox, sendAt, attachments, changedFields }: ChangedDraft,
): Promise<void> {
  if (draft.sendStatus === 'pending_approval') {
    const { requestedByKind, requestedById } = draft;
    const actor =
      requestedByKind && requestedById ? { kind: requestedByKind, id: requestedById } : scope.actor;
    const request = { inbox, actor, attachmentCount: attachments.length, changedFields };
    await requestApproval(transaction, options, draft, request);
    if (sendAt !== undefined) draft.sendAt = sendAt;
    return;
  }
  if (sendAt === null) return unscheduleSend(transaction, options.outbox, draft);
  const isScheduled = draft.sendStatus === 'scheduled';
  const plannedAt = sendAt ?? (isScheduled ? draft.sendAt : null);
  if (plannedAt)
    return planSend(transaction, options, draft, { scope, inbox, sendAt: plannedAt, attachments });
  if (draft.sendStatus === 'rejected') unscheduleSend(transaction, options.outbox, draft);
}
