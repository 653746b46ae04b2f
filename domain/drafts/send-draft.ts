import { sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { requireReconciled } from '../../platform/installation/pending-restore.ts';
import { PRIORITY, type Priority } from '../../workflows/task-queues.contract.ts';
import { findDraftAttachments } from '../attachments/attach-files.ts';
import type { SharedDomainLimit } from '../deliverability/daily-allowances.ts';
import type { UnsubscribeLinks } from '../deliverability/unsubscribe-links.ts';
import type { EventService } from '../events/event.service.ts';
import type { Scope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import { type Inbox, InboxEntity } from '../inboxes/inbox.entity.ts';
import type { MessageDetails } from '../messages/message-details.ts';
import { findLinkedThreadId } from '../messages/place-message.ts';
import { toReplySubject } from '../mime/subject.ts';
import { checkSend, readGateInput } from '../outbound/check-send.ts';
import { HELD_DETAIL } from '../outbound/held-sends.ts';
import { addUnsubscribeHeaders, envelopeContent, type Submission } from '../outbound/outbound-content.ts';
import { createSubmittedMessage } from '../outbound/queue-submission.ts';
import { createOutboundMessage } from '../outbound/send.service.ts';
import { recordRefusedSend } from '../outbound/send-events.ts';
import { isHeld } from '../outbound/send-gate.ts';
import { isUsageLimitExceeded } from '../usage/limit-errors.ts';
import { type Draft, DraftEntity } from './draft.entity.ts';
import { type ApprovalOptions, requestApproval } from './draft-approval.ts';
import { findSendProblem, requesterOf } from './draft-requester.ts';
import { signalUnscheduled } from './draft-schedule.ts';
import { findDraftTarget } from './draft-target.ts';
import { type RefuseRequesterOptions, refuseRequester } from './reject-draft.ts';
import { findDraftSender } from './reply-parent.ts';
import { deleteDraft, lockScheduledDraft, saveDraft } from './stored-draft.ts';

export interface SendDraftOptions extends ApprovalOptions, RefuseRequesterOptions {
  unsubscribeLinks: UnsubscribeLinks;
  sharedDomainLimit?: SharedDomainLimit | undefined;
}

export interface DraftSend {
  /** Its actor is the sender of the message. */
  scope: Scope;
  /** A person has approved the draft's version. */
  isApproved?: boolean | undefined;
  /** The draft waits for an approval. */
  isWaiting?: boolean;
  priority?: Priority;
}

/** The draft was not sent, because a person must approve it first. */
export interface NeedsApproval {
  needsApproval: true;
  /** The received message whose alarm demands it; null if a policy does. */
  alarmMessageId: string | null;
}

/**
 * Creates the message of a locked draft and deletes the draft, in the caller's transaction. If a policy requires approval,
 * does neither.
 *
 * @throws AppError `draft_target_not_found`, `no_recipients`, `message_rejected`, `*_suspended`.
 */
export async function sendDraft(
  transaction: Transaction,
  draft: Draft,
  options: SendDraftOptions,
  send: DraftSend,
): Promise<MessageDetails | NeedsApproval> {
  const inbox = await findInbox(transaction.db, send.scope, draft.inboxId);
  const created = draft.submission
    ? await sendSubmission(transaction, options, { draft, inbox, submission: draft.submission, send })
    : await sendComposed(transaction, options, { draft, inbox, send });
  if ('needsApproval' in created) return created;
  if (draft.sendStatus === 'scheduled') signalUnscheduled(transaction, options.outbox, draft);
  await deleteDraft(transaction.db, draft);
  return created;
}

interface DraftToSend {
  draft: Draft;
  inbox: Inbox;
  send: DraftSend;
}

async function sendComposed(
  transaction: Transaction,
  { outbox, events, unsubscribeLinks, sharedDomainLimit }: SendDraftOptions,
  { draft, inbox, send: { scope, isApproved, isWaiting, priority } }: DraftToSend,
): Promise<MessageDetails | NeedsApproval> {
  const { db } = transaction;
  const { thread, parent } = await findDraftTarget(db, draft);
  const subject = parent ? toReplySubject(draft.subject ?? parent.subject) : draft.subject;
  const content = { ...draft, subject };
  const { needsApproval, alarmMessageId, autoSubmitted } = await checkSend(transaction, events, {
    scope,
    inbox,
    content,
    draftId: draft.id,
    threadId: thread?.id,
    parent,
    forwardedMessageId: draft.forwardedMessageId,
    isApproved,
    isWaiting,
    sharedDomainLimit,
  });
  if (needsApproval) return { needsApproval, alarmMessageId };
  return createOutboundMessage(transaction, outbox, {
    inbox,
    content: addUnsubscribeHeaders(content, inbox, unsubscribeLinks),
    place: thread && { thread, isNew: false },
    parent,
    attachments: await findDraftAttachments(db, draft.id),
    draftId: draft.id,
    autoSubmitted,
    priority,
  });
}

/** Sends exactly the bytes that were submitted over SMTP. */
async function sendSubmission(
  transaction: Transaction,
  { outbox, events, sharedDomainLimit }: SendDraftOptions,
  {
    draft,
    inbox,
    submission,
    send: { scope, isApproved, isWaiting },
  }: DraftToSend & { submission: Submission },
): Promise<MessageDetails | NeedsApproval> {
  const { db } = transaction;
  const { needsApproval, alarmMessageId } = await checkSend(transaction, events, {
    scope,
    inbox,
    content: envelopeContent(draft, submission),
    draftId: draft.id,
    threadId: await findLinkedThreadId(db, inbox.id, submission),
    isApproved,
    isWaiting,
    sharedDomainLimit,
  });
  if (needsApproval) return { needsApproval, alarmMessageId };
  return createSubmittedMessage(transaction, outbox, {
    inbox,
    content: draft,
    submission,
    attachments: await findDraftAttachments(db, draft.id),
    draftId: draft.id,
  });
}

/**
 * The result of a scheduled send. `held`: the draft waits for the end of a suspension. `pending_approval`: a policy set
 * in the meantime requires approval. `waitUntil` is the new time, ISO 8601, if the draft was rescheduled.
 */
export type DueDraftResult =
  | { waitUntil: string }
  | 'sent'
  | 'refused'
  | 'held'
  | 'pending_approval'
  | 'gone';

/**
 * Sends a due scheduled draft if its requester and approver still have the permission. A refusal is recorded on the
 * draft.
 *
 * @param scheduleVersion the schedule of the calling run; an outdated one has no effect (`gone`).
 */
export async function sendDueDraft(
  options: SendDraftOptions & { database: Database },
  draftId: string,
  scheduleVersion: number,
): Promise<DueDraftResult> {
  const { database, events } = options;
  await requireReconciled(database);
  try {
    return await database.systemTransaction(async (transaction) => {
      const { db } = transaction;
      const draft = await lockScheduledDraft(db, draftId, scheduleVersion);
      if (!draft?.sendAt) return 'gone';
      if (draft.sendAt.getTime() > Date.now()) return { waitUntil: draft.sendAt.toISOString() };
      if (isHeld(await readGateInput(db, draft.inboxId, { recipients: [], threadId: null }))) {
        await saveDraft(db, { ...draft, sendError: HELD_DETAIL });
        return 'held';
      }
      const problem = await findSendProblem(transaction.db, draft, { lock: true });
      if (problem) {
        await refuseRequester(transaction, options, draft, problem);
        return 'refused';
      }
      const result = await sendPlanned(transaction, options, draft);
      return 'needsApproval' in result ? 'pending_approval' : 'sent';
    });
  } catch (error) {
    if (!(error instanceof AppError) || error.status >= 500) throw error;
    await database.systemTransaction(async (transaction) => {
      const failed = await transaction.db
        .updateTable('drafts')
        .set({
          send_status: 'failed',
          send_error: `${error.code}: ${error.detail}`,
          updated_at: sql`now()`,
        })
        .where('id', '=', draftId)
        .where('schedule_version', '=', scheduleVersion)
        .where('send_status', '=', 'scheduled')
        .returning(columnsOf(DraftEntity))
        .executeTakeFirst();
      // The gate records its own refusals. An exceeded limit rolls back the transaction, so its event is recorded here.
      if (failed && isUsageLimitExceeded(error)) await recordOverLimit(transaction, events, failed, error);
    });
    return 'refused';
  }
}

async function sendPlanned(
  transaction: Transaction,
  options: SendDraftOptions,
  draft: Draft,
): Promise<MessageDetails | NeedsApproval> {
  const { db } = transaction;
  const inbox = await readInboxOf(db, draft);
  const scope = createRequesterScope(draft);
  const isApproved = draft.approvedVersion === draft.version;
  const result = await sendDraft(transaction, draft, options, {
    scope,
    isApproved,
    priority: PRIORITY.scheduled,
  });
  if (!('needsApproval' in result)) return result;
  // The calling run ends by itself.
  draft.sendStatus = 'draft';
  const attachments = await findDraftAttachments(db, draft.id);
  const { alarmMessageId } = result;
  const request = { inbox, actor: scope.actor, attachmentCount: attachments.length, alarmMessageId };
  await requestApproval(transaction, options, draft, request);
  await saveDraft(db, draft);
  return result;
}

function readInboxOf(db: Db, { inboxId }: Draft): Promise<Inbox> {
  return db
    .selectFrom('inboxes')
    .select(columnsOf(InboxEntity))
    .where('id', '=', inboxId)
    .executeTakeFirstOrThrow(() => new Error('A draft has no inbox'));
}

async function recordOverLimit(
  transaction: Transaction,
  events: EventService,
  draft: Draft,
  { detail }: AppError,
): Promise<void> {
  const { db } = transaction;
  const inbox = await readInboxOf(db, draft);
  await recordRefusedSend(transaction, events, {
    inbox,
    sender: await findDraftSender(db, draft, inbox),
    content: draft,
    draftId: draft.id,
    refusal: { reason: 'rate_limited', detail },
  });
}

/**
 * The scope of a send without a request. It is limited to the draft's inbox and acts for the credential that planned
 * the send.
 */
function createRequesterScope(draft: Draft): Scope {
  return {
    organizationId: draft.organizationId,
    environmentId: draft.environmentId,
    environmentBound: true,
    inboxId: draft.inboxId,
    permissions: new Set(['messages:send'] as const),
    actor: requesterOf(draft),
    requestId: draft.id,
  };
}
