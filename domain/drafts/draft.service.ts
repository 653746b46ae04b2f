import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { findRow, findRows, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { attachFiles, findDraftAttachments } from '../attachments/attach-files.ts';
import { type Attachment, AttachmentEntity } from '../attachments/attachment.entity.ts';
import type { FileToAttach } from '../attachments/stored-file.ts';
import type { SharedDomainLimit } from '../deliverability/shared-domain-cap-rows.ts';
import type { UnsubscribeLinks } from '../deliverability/unsubscribe-links.ts';
import type { EventService } from '../events/event.service.ts';
import { requirePermission, type Scope, withinScope } from '../identity/scope.ts';
import { readInbox, requireActive, requireActiveInbox } from '../inboxes/find-inbox.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { MessageEntity } from '../messages/message.entity.ts';
import type { MessageDetails } from '../messages/message-details.ts';
import { buildEnvelope, type OutboundContent } from '../outbound/outbound-content.ts';
import { changeDraft, createDraft, type DraftDetails, type DraftFields } from './create-draft.ts';
import { type Draft, DraftEntity } from './draft.entity.ts';
import { unscheduleSend } from './draft-schedule.ts';
import { type DueDraftResult, sendDraft, sendDueDraft } from './send-draft.ts';

export interface DraftInput extends DraftFields {
  /** All files of the draft; files that are not listed are removed. */
  files?: readonly FileToAttach[];
}

export type { DraftDetails };

export interface DraftService {
  /**
   * @throws AppError `not_found` for the inbox or a file, `payload_too_large`, `permission_denied` if `sendAt` is given
   * without `messages:send`.
   */
  create(scope: Scope, inboxId: string, input: DraftInput): Promise<DraftDetails>;
  /**
   * Creates a draft that is sent at a time, for calls that would otherwise send immediately.
   *
   * @throws AppError `not_found`, `no_recipients`, `payload_too_large`.
   */
  schedule(
    scope: Scope,
    inboxId: string,
    content: OutboundContent & { sendAt: Date; files?: readonly FileToAttach[] | undefined },
  ): Promise<DraftDetails>;
  /**
   * @param expectedVersion the version the change is based on (`If-Match`).
   * @throws AppError `not_found`, `conflict` if the draft has another version, `payload_too_large`, `permission_denied` if
   * the draft is or becomes scheduled and the credential may not send.
   */
  update(scope: Scope, draftId: string, patch: DraftInput, expectedVersion?: number): Promise<DraftDetails>;
  get(scope: Scope, draftId: string): Promise<DraftDetails>;
  list(scope: Scope, inboxId: string, page: PageRequest): Promise<Page<DraftDetails>>;
  delete(scope: Scope, draftId: string): Promise<void>;
  /**
   * Turns the draft into a message: afterwards the draft is deleted, the message is queued and its workflow starts,
   * even if this process crashes right after the commit. If two calls race, one sends and the other finds no draft.
   *
   * @throws AppError `not_found`, `draft_target_not_found`, `no_recipients`, `message_rejected`, `*_suspended`,
   * `usage_limit_exceeded`; the draft is kept in each case.
   */
  send(scope: Scope, draftId: string): Promise<MessageDetails>;
  /** Sends a scheduled draft when it is due. A refusal is recorded on the draft. */
  sendDue(draftId: string, scheduleVersion: number): Promise<DueDraftResult>;
  /** Unschedules a draft because an operator ended its workflow, and records the reason in `send_error`. */
  cancelSchedule(draftId: string, scheduleVersion: number): Promise<void>;
}

export interface DraftServiceOptions {
  database: Database;
  outbox: Outbox;
  events: EventService;
  unsubscribeLinks: UnsubscribeLinks;
  sharedDomainLimit?: SharedDomainLimit | undefined;
}

export function createDraftService({
  database,
  outbox,
  events,
  unsubscribeLinks,
  sharedDomainLimit,
}: DraftServiceOptions): DraftService {
  return {
    create: (scope, inboxId, input) =>
      database.transaction(scope, async (transaction) => {
        if (input.sendAt) requirePermission(scope, 'messages:send');
        const inbox = requireActive(await readInbox(transaction.em, scope, inboxId));
        return createWithFiles(transaction, outbox, { scope, inbox, input });
      }),

    schedule: (scope, inboxId, { sendAt, files, ...content }) =>
      database.transaction(scope, async (transaction) => {
        const inbox = requireActive(await readInbox(transaction.em, scope, inboxId));
        buildEnvelope(content);
        return createWithFiles(transaction, outbox, {
          scope,
          inbox,
          input: { ...content, sendAt, files: files ?? [] },
        });
      }),

    update: (scope, draftId, patch, expectedVersion) =>
      database.transaction(scope, async (transaction) => {
        const draft = await lockDraft(transaction.em, scope, draftId);
        await requireActiveInbox(transaction.em, draft.inboxId);
        // A scheduled draft is sent without another call, so scheduling or changing it needs the permission to send.
        if (patch.sendAt || draft.sendStatus === 'scheduled') requirePermission(scope, 'messages:send');
        if (expectedVersion !== undefined && draft.version !== expectedVersion) throw versionConflict(draft);
        const { files, ...fields } = patch;
        changeDraft(transaction, outbox, draft, fields);
        return { draft, attachments: await replaceFiles(transaction.em, scope, draft, files) };
      }),

    get: (scope, draftId) =>
      database.read(scope, async (reader) => {
        const draft = await findRow(reader, DraftEntity, { where: { id: draftId, ...withinScope(scope) } });
        if (!draft) throw await draftNotFound(reader, scope, draftId);
        const [details] = await loadDetailsForAll(reader, [draft]);
        return details as DraftDetails;
      }),

    list: (scope, inboxId, page) =>
      database.read(scope, async (reader) => {
        await readInbox(reader, scope, inboxId);
        const where = { ...withinScope(scope), inboxId };
        const { items, next } = await findPage(reader, DraftEntity, { where, page });
        return { items: await loadDetailsForAll(reader, items), next };
      }),

    delete: (scope, draftId) =>
      database.transaction(scope, async (transaction) => {
        const draft = await lockDraft(transaction.em, scope, draftId);
        await requireActiveInbox(transaction.em, draft.inboxId);
        unscheduleSend(transaction, outbox, draft);
        transaction.em.remove(draft);
      }),

    send: (scope, draftId) =>
      database.transaction(scope, async (transaction) => {
        const draft = await lockDraft(transaction.em, scope, draftId);
        return sendDraft(transaction, scope, draft, {
          outbox,
          events,
          unsubscribeLinks,
          sharedDomainLimit,
        }).catch((error: unknown) => {
          throw scope.permissions.has('drafts:read') ? error : withoutDraftContent(error);
        });
      }),

    sendDue: (draftId, scheduleVersion) =>
      sendDueDraft(
        { database, outbox, events, unsubscribeLinks, sharedDomainLimit },
        draftId,
        scheduleVersion,
      ),

    cancelSchedule: (draftId, scheduleVersion) =>
      database.systemTransaction(async ({ em }) => {
        await em.nativeUpdate(
          DraftEntity,
          { id: draftId, scheduleVersion, sendStatus: 'scheduled' },
          {
            sendStatus: 'draft',
            sendAt: null,
            sendError: 'An operator ended the workflow of the scheduled send.',
            updatedAt: new Date(),
          },
        );
      }),
  };
}

function createWithFiles(
  transaction: Transaction,
  outbox: Outbox,
  { scope, inbox, input: { files = [], ...fields } }: { scope: Scope; inbox: Row<Inbox>; input: DraftInput },
): Promise<DraftDetails> {
  const attach = (draftId: string) => attachFiles(transaction.em, { scope, inbox, files, draftId });
  return createDraft(transaction, outbox, { inbox, fields, attach });
}

/** A refusal names recipients and targets, which a credential that may send but not read drafts must not learn. */
function withoutDraftContent(error: unknown): unknown {
  if (!(error instanceof AppError) || error.status !== 422) return error;
  const { extensions, commitsTransaction } = error;
  return new AppError(error.code, {
    detail: 'The draft cannot be sent as it is.',
    fix: 'Use a key with the permission drafts:read to see which recipient or target is the reason.',
    extensions,
    commitsTransaction,
    cause: error,
  });
}

/** @param files if undefined, the draft's files are unchanged. */
async function replaceFiles(
  em: EntityManager,
  scope: Scope,
  draft: Draft,
  files: readonly FileToAttach[] | undefined,
): Promise<Attachment[]> {
  const current = await findDraftAttachments(em, draft.id);
  if (files === undefined) return current;
  const inbox = await readInbox(em, scope, draft.inboxId);
  const attachments = await attachFiles(em, { scope, inbox, files, draftId: draft.id });
  em.remove(current.filter((row) => !attachments.includes(row)));
  return attachments;
}

/** Loads the attachments of all drafts in one statement. */
async function loadDetailsForAll(reader: RowReader, drafts: Row<Draft>[]): Promise<DraftDetails[]> {
  if (drafts.length === 0) return [];
  const ids = drafts.map(({ id }) => id);
  const attachments = await findRows(reader, AttachmentEntity, {
    where: { draftId: { $in: ids } },
    orderBy: { position: 'asc' },
  });
  const attachmentsByDraftId = Map.groupBy(attachments, ({ draftId }) => draftId);
  return drafts.map((draft) => ({ draft, attachments: attachmentsByDraftId.get(draft.id) ?? [] }));
}

async function lockDraft(em: EntityManager, scope: Scope, draftId: string): Promise<Draft> {
  const draft = await em.findOne(
    DraftEntity,
    { id: draftId, ...withinScope(scope) },
    { lockMode: LockMode.PESSIMISTIC_WRITE },
  );
  if (!draft) throw await draftNotFound(em, scope, draftId);
  return draft;
}

/** Names the message that the draft became, if it was sent. */
async function draftNotFound(reader: RowReader, scope: Scope, draftId: string): Promise<AppError> {
  const message = await findRow(reader, MessageEntity, { where: { draftId, ...withinScope(scope) } });
  if (!message) return notFound('draft', draftId);
  return new AppError('not_found', {
    detail: `The draft ${draftId.slice(0, 64)} was sent and is now the message ${message.id}.`,
    fix: `Use the message: GET /api/v1/messages/${message.id}.`,
    extensions: { message_id: message.id },
  });
}

function versionConflict(draft: Draft): AppError {
  return new AppError('conflict', {
    detail: `The draft was changed in the meantime; its version is now ${draft.version}.`,
    fix: 'Fetch the draft again and repeat the change with its current version in If-Match.',
    extensions: { version: draft.version },
  });
}
