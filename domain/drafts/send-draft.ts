import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { PRIORITY, type Priority } from '../../workflows/task-queues.contract.ts';
import { findDraftAttachments } from '../attachments/attach-files.ts';
import type { SharedDomainLimit } from '../deliverability/shared-domain-cap-rows.ts';
import type { UnsubscribeLinks } from '../deliverability/unsubscribe-links.ts';
import type { EventService } from '../events/event.service.ts';
import type { Scope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import type { MessageDetails } from '../messages/message-details.ts';
import { toReplySubject } from '../mime/subject.ts';
import { checkSend, recordRefusedSend } from '../outbound/check-send.ts';
import { createOutboundMessage } from '../outbound/create-outbound-message.ts';
import { readGateInput } from '../outbound/gate-input.ts';
import { HELD_DETAIL } from '../outbound/held-sends.ts';
import { isSuspended } from '../outbound/send-gate.ts';
import { addUnsubscribeHeaders } from '../outbound/unsubscribe-headers.ts';
import { isUsageLimitExceeded } from '../usage/limit-errors.ts';
import { type Draft, DraftEntity } from './draft.entity.ts';
import { unscheduleSend } from './draft-schedule.ts';
import { findDraftTarget } from './draft-target.ts';

export interface SendDraftOptions {
  outbox: Outbox;
  events: EventService;
  unsubscribeLinks: UnsubscribeLinks;
  sharedDomainLimit?: SharedDomainLimit | undefined;
}

/**
 * Creates the message of a locked draft and deletes the draft, in the caller's transaction.
 *
 * @throws AppError `draft_target_not_found`, `no_recipients`, `message_rejected`, `*_suspended`.
 */
export async function sendDraft(
  transaction: Transaction,
  scope: Scope,
  draft: Draft,
  {
    outbox,
    events,
    unsubscribeLinks,
    sharedDomainLimit,
    priority,
  }: SendDraftOptions & { priority?: Priority },
): Promise<MessageDetails> {
  const { em } = transaction;
  const inbox = await findInbox(em, scope, draft.inboxId);
  const { thread, parent } = await findDraftTarget(em, draft);
  const subject = parent ? toReplySubject(draft.subject ?? parent.subject) : draft.subject;
  const content = { ...draft, subject };
  const { autoSubmitted } = await checkSend(transaction, events, {
    scope,
    inbox,
    content,
    threadId: thread?.id,
    sharedDomainLimit,
  });
  const attachments = await findDraftAttachments(em, draft.id);
  const created = createOutboundMessage(transaction, outbox, {
    inbox,
    content: addUnsubscribeHeaders(content, inbox, unsubscribeLinks),
    thread,
    parent,
    attachments,
    draftId: draft.id,
    autoSubmitted,
    priority,
  });
  unscheduleSend(transaction, outbox, draft);
  em.remove(draft);
  return created;
}

/**
 * The result of a scheduled send. `held`: the draft waits for the end of a suspension. `waitUntil` is the new time, ISO 8601, if the
 * draft was rescheduled.
 */
export type DueDraftResult = { waitUntil: string } | 'sent' | 'refused' | 'held' | 'gone';

/**
 * Sends a scheduled draft when it is due. A refusal is recorded on the draft.
 *
 * @param scheduleVersion the schedule that the caller acts for; an outdated one has no effect (`gone`).
 */
export async function sendDueDraft(
  options: SendDraftOptions & { database: Database },
  draftId: string,
  scheduleVersion: number,
): Promise<DueDraftResult> {
  const { database, events } = options;
  try {
    return await database.systemTransaction(async (transaction) => {
      const draft = await transaction.em.findOne(
        DraftEntity,
        { id: draftId, scheduleVersion, sendStatus: 'scheduled' },
        { lockMode: LockMode.PESSIMISTIC_WRITE },
      );
      if (!draft?.sendAt) return 'gone';
      if (draft.sendAt.getTime() > Date.now()) return { waitUntil: draft.sendAt.toISOString() };
      if (isSuspended(await readGateInput(transaction.em, draft.inboxId, [], null))) {
        draft.sendError = HELD_DETAIL;
        return 'held';
      }
      await sendDraft(transaction, await scheduledSendScope(transaction.em, draft), draft, {
        ...options,
        priority: PRIORITY.scheduled,
      });
      return 'sent';
    });
  } catch (error) {
    if (!(error instanceof AppError) || error.status >= 500) throw error;
    await database.systemTransaction(async (transaction) => {
      const failed = await transaction.em.nativeUpdate(
        DraftEntity,
        { id: draftId, scheduleVersion, sendStatus: 'scheduled' },
        { sendStatus: 'failed', sendError: `${error.code}: ${error.detail}`, updatedAt: new Date() },
      );
      // The gate records its own refusals. Exceeding a limit rolls back the transaction, so that event is recorded
      // here.
      if (failed === 1 && isUsageLimitExceeded(error))
        await recordOverLimit(transaction, events, draftId, error);
    });
    return 'refused';
  }
}

async function recordOverLimit(
  transaction: Transaction,
  events: EventService,
  draftId: string,
  { detail }: AppError,
): Promise<void> {
  const { em } = transaction;
  const content = await em.findOneOrFail(DraftEntity, { id: draftId });
  const inbox = await em.findOneOrFail(InboxEntity, { id: content.inboxId });
  await recordRefusedSend(transaction, events, {
    inbox,
    content,
    refusal: { reason: 'rate_limited', detail },
  });
}

/** A scheduled send may act only within the draft's own inbox. */
async function scheduledSendScope(em: EntityManager, draft: Draft): Promise<Scope> {
  const inbox = await em.findOneOrFail(InboxEntity, { id: draft.inboxId });
  return {
    organizationId: draft.organizationId,
    environmentId: draft.environmentId,
    environmentBound: true,
    inboxId: inbox.id,
    permissions: new Set(['messages:send'] as const),
    actor: { kind: 'system', id: draft.id },
    requestId: draft.id,
  };
}
