import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { type Page, type PageRequest, pageOf } from '../../platform/pagination.ts';
import { attachFiles, attachmentsOfDraft } from '../attachments/attach-files.ts';
import { type Attachment, AttachmentEntity } from '../attachments/attachment.entity.ts';
import type { FileToAttach } from '../attachments/stored-file.ts';
import type { EventService } from '../events/event.service.ts';
import { type Scope, withinScope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import type { MessageDetails } from '../messages/message-details.ts';
import { replySubject } from '../mime/subject.ts';
import { checkSend, recordRefusedSend } from '../outbound/check-send.ts';
import { createOutboundMessage } from '../outbound/create-outbound-message.ts';
import type { OutboundContent } from '../outbound/outbound-content.ts';
import { isUsageLimitExceeded } from '../usage/limit-errors.ts';
import { type Draft, DraftEntity } from './draft.entity.ts';
import { scheduleSend, unscheduleSend } from './draft-schedule.ts';
import { findDraftTarget } from './draft-target.ts';

/** Undefined leaves a field as it is; null, or an empty array, clears it. */
export interface DraftInput extends Partial<OutboundContent> {
  /** Looked up only when the draft is sent. */
  threadId?: string | null;
  inReplyTo?: string | null;
  /** When to send by itself; a time that has passed means at once. */
  sendAt?: Date | null;
  /** All files of the draft: those not named go. */
  files?: readonly FileToAttach[];
}

/** A draft with its files, in order. */
export interface DraftDetails {
  draft: Draft;
  attachments: Attachment[];
}

export interface DraftService {
  /** @throws AppError `not_found` for the inbox or a file, `payload_too_large`. */
  create(scope: Scope, inboxId: string, input: DraftInput): Promise<DraftDetails>;
  /**
   * @param expectedVersion the version the caller has seen (`If-Match`).
   * @throws AppError `not_found`, `conflict` where the version is another, `payload_too_large`.
   */
  update(scope: Scope, draftId: string, patch: DraftInput, expectedVersion?: number): Promise<DraftDetails>;
  get(scope: Scope, draftId: string): Promise<DraftDetails>;
  list(scope: Scope, inboxId: string, page: PageRequest): Promise<Page<DraftDetails>>;
  delete(scope: Scope, draftId: string): Promise<void>;
  /**
   * Turns the draft into a message: afterwards the draft is gone, the message is queued and its workflow starts, also
   * when this process dies right after the commit. Of two calls at once one wins, the other finds no draft.
   *
   * @throws AppError `not_found`, `draft_target_not_found`, `no_recipients`, `message_rejected`, `*_suspended`,
   * `usage_limit_exceeded`; the draft stays in every case.
   */
  send(scope: Scope, draftId: string): Promise<MessageDetails>;
  /**
   * Sends a scheduled draft whose time has come. What the send refuses is written on the draft.
   *
   * @returns the time to wait for, ISO 8601, where the plan has moved; `sent`, `refused` or `gone` otherwise.
   */
  sendDue(draftId: string, plan: number): Promise<{ waitUntil: string } | 'sent' | 'refused' | 'gone'>;
  /** Takes a plan off a draft because an operator ended its run; `send_error` says so. */
  cancelSchedule(draftId: string, plan: number): Promise<void>;
}

export interface DraftServiceOptions {
  database: Database;
  outbox: Outbox;
  events: EventService;
}

export function createDraftService({ database, outbox, events }: DraftServiceOptions): DraftService {
  const send = (transaction: Transaction, scope: Scope, draft: Draft) =>
    sendDraft(transaction, scope, draft, { outbox, events });

  return {
    create: (scope, inboxId, input) =>
      database.transaction(scope, async (transaction) => {
        const inbox = await findInbox(transaction.em, scope, inboxId);
        const draft = transaction.em.create(DraftEntity, {
          id: newId('draft'),
          organizationId: inbox.organizationId,
          environmentId: inbox.environmentId,
          inboxId: inbox.id,
          to: [],
          cc: [],
          bcc: [],
          replyTo: [],
          headers: {},
          scheduleVersion: 0,
          version: 0,
        });
        transaction.em.persist(draft);
        applyChanges(transaction, outbox, draft, input);
        const files = input.files ?? [];
        return {
          draft,
          attachments: await attachFiles(transaction.em, { scope, inbox, files, draftId: draft.id }),
        };
      }),

    update: (scope, draftId, patch, expectedVersion) =>
      database.transaction(scope, async (transaction) => {
        const draft = await lockDraft(transaction.em, scope, draftId);
        if (expectedVersion !== undefined && draft.version !== expectedVersion) throw versionConflict(draft);
        applyChanges(transaction, outbox, draft, patch);
        return { draft, attachments: await replaceFiles(transaction.em, scope, draft, patch.files) };
      }),

    get: (scope, draftId) =>
      database.transaction(scope, async ({ em }) => {
        const draft = await em.findOne(DraftEntity, { id: draftId, ...withinScope(scope) });
        if (!draft) throw notFound('draft', draftId);
        return { draft, attachments: await attachmentsOfDraft(em, draftId) };
      }),

    list: (scope, inboxId, page) =>
      database.transaction(scope, async ({ em }) => {
        await findInbox(em, scope, inboxId);
        const [after] = page.after ?? [];
        const drafts = await em.find(
          DraftEntity,
          {
            ...withinScope(scope),
            inboxId,
            ...(after === undefined ? {} : { id: page.order === 'asc' ? { $gt: after } : { $lt: after } }),
          },
          { orderBy: { id: page.order }, limit: page.limit + 1 },
        );
        const { items, next } = pageOf(drafts, page.limit, ({ id }) => [id]);
        return { items: await loadDetailsForAll(em, items), next };
      }),

    delete: (scope, draftId) =>
      database.transaction(scope, async (transaction) => {
        const draft = await lockDraft(transaction.em, scope, draftId);
        unscheduleSend(transaction, outbox, draft);
        transaction.em.remove(draft);
      }),

    send: (scope, draftId) =>
      database.transaction(scope, async (transaction) =>
        send(transaction, scope, await lockDraft(transaction.em, scope, draftId)),
      ),

    sendDue: (draftId, plan) => sendDue({ database, events, send }, draftId, plan),

    cancelSchedule: (draftId, plan) =>
      database.systemTransaction(async ({ em }) => {
        await em.nativeUpdate(
          DraftEntity,
          { id: draftId, scheduleVersion: plan, sendStatus: 'scheduled' },
          {
            sendStatus: 'draft',
            sendAt: null,
            sendError: 'An operator ended the schedule’s workflow.',
            updatedAt: new Date(),
          },
        );
      }),
  };
}

function applyChanges(
  transaction: Transaction,
  outbox: Outbox,
  draft: Draft,
  { sendAt, files: _files, ...fields }: DraftInput,
): void {
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) Object.assign(draft, { [name]: value });
  }
  draft.version += 1;
  if (sendAt === null) unscheduleSend(transaction, outbox, draft);
  else if (sendAt !== undefined) scheduleSend(transaction, outbox, draft, sendAt);
}

/** @param files undefined leaves the draft's files as they are. */
async function replaceFiles(
  em: EntityManager,
  scope: Scope,
  draft: Draft,
  files: readonly FileToAttach[] | undefined,
): Promise<Attachment[]> {
  const before = await attachmentsOfDraft(em, draft.id);
  if (files === undefined) return before;
  const inbox = await findInbox(em, scope, draft.inboxId);
  const attachments = await attachFiles(em, { scope, inbox, files, draftId: draft.id });
  em.remove(before.filter((row) => !attachments.includes(row)));
  return attachments;
}

/** One statement for a whole page. */
async function loadDetailsForAll(em: EntityManager, drafts: Draft[]): Promise<DraftDetails[]> {
  if (drafts.length === 0) return [];
  const ids = drafts.map(({ id }) => id);
  const attachments = await em.find(
    AttachmentEntity,
    { draftId: { $in: ids } },
    { orderBy: { position: 'asc' } },
  );
  const attachmentsOf = Map.groupBy(attachments, ({ draftId }) => draftId);
  return drafts.map((draft) => ({ draft, attachments: attachmentsOf.get(draft.id) ?? [] }));
}

async function lockDraft(em: EntityManager, scope: Scope, draftId: string): Promise<Draft> {
  const draft = await em.findOne(
    DraftEntity,
    { id: draftId, ...withinScope(scope) },
    { lockMode: LockMode.PESSIMISTIC_WRITE },
  );
  if (!draft) throw notFound('draft', draftId);
  return draft;
}

interface SendParts {
  outbox: Outbox;
  events: EventService;
}

async function sendDraft(
  transaction: Transaction,
  scope: Scope,
  draft: Draft,
  { outbox, events }: SendParts,
): Promise<MessageDetails> {
  const { em } = transaction;
  const inbox = await findInbox(em, scope, draft.inboxId);
  const { thread, parent } = await findDraftTarget(em, draft);
  const subject = draft.subject ?? (parent ? replySubject(parent.subject) : null);
  const content = { ...draft, subject };
  const refusal = await checkSend(transaction, events, inbox, content, thread?.id);
  if (refusal) throw refusal;
  const attachments = await attachmentsOfDraft(em, draft.id);
  const created = createOutboundMessage(transaction, outbox, { inbox, content, thread, parent, attachments });
  unscheduleSend(transaction, outbox, draft);
  em.remove(draft);
  return created;
}

interface DueParts {
  database: Database;
  events: EventService;
  send: (transaction: Transaction, scope: Scope, draft: Draft) => Promise<MessageDetails>;
}

async function sendDue(
  { database, events, send }: DueParts,
  draftId: string,
  plan: number,
): Promise<{ waitUntil: string } | 'sent' | 'refused' | 'gone'> {
  try {
    return await database.systemTransaction(async (transaction) => {
      const draft = await transaction.em.findOne(
        DraftEntity,
        { id: draftId, scheduleVersion: plan, sendStatus: 'scheduled' },
        { lockMode: LockMode.PESSIMISTIC_WRITE },
      );
      if (!draft?.sendAt) return 'gone';
      if (draft.sendAt.getTime() > Date.now()) return { waitUntil: draft.sendAt.toISOString() };
      await send(transaction, await scheduledSendScope(transaction.em, draft), draft);
      return 'sent';
    });
  } catch (error) {
    if (!(error instanceof AppError) || error.status >= 500) throw error;
    await database.systemTransaction(async (transaction) => {
      const failed = await transaction.em.nativeUpdate(
        DraftEntity,
        { id: draftId, scheduleVersion: plan, sendStatus: 'scheduled' },
        { sendStatus: 'failed', sendError: `${error.code}: ${error.detail}`, updatedAt: new Date() },
      );
      // The gate tells of its own refusals; the transaction of this one was taken back.
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

/** A scheduled send acts within the draft's own inbox and nowhere else. */
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

function versionConflict(draft: Draft): AppError {
  return new AppError('conflict', {
    detail: `The draft has changed meanwhile; its version is ${draft.version}.`,
    fix: 'Read the draft again and repeat the change with its new version in If-Match.',
    extensions: { version: draft.version },
  });
}
