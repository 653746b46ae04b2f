import type { EntityManager } from '@mikro-orm/postgresql';
import { anyOf } from '../../platform/database/any-of.ts';
import { dbOf } from '../../platform/database/bridge.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { findRow, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { AppError } from '../../platform/errors.ts';
import { forgetResponses } from '../../platform/idempotency/forget-responses.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { attachFiles, findDraftAttachments, saveAttachments } from '../attachments/attach-files.ts';
import type { Attachment } from '../attachments/attachment.entity.ts';
import type { FileToAttach } from '../attachments/stored-file.ts';
import { requirePermission, type Scope, withinScope } from '../identity/scope.ts';
import { findInbox, findPresentInbox, requireActive, requireActiveInbox } from '../inboxes/find-inbox.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import type { MessageDetails } from '../messages/message-details.ts';
import { buildEnvelope, type OutboundContent } from '../outbound/outbound-content.ts';
import { createDraft, type DraftDetails, type DraftFields, saveDraft, setFields } from './create-draft.ts';
import { type Draft, DraftEntity, type DraftSendStatus } from './draft.entity.ts';
import { requestApproval, voidApproval } from './draft-approval.ts';
import { type DraftPrecondition, requirePrecondition, requireSeenVersion } from './draft-precondition.ts';
import { signalUnscheduled } from './draft-schedule.ts';
import {
  draftNotFound,
  loadDetailsForAll,
  lockDraft,
  lockDraftRow,
  readInboxWithinReach,
  withinReach,
} from './find-draft.ts';
import { replanSend } from './plan-send.ts';
import { type DueDraftResult, type SendDraftOptions, sendDraft, sendDueDraft } from './send-draft.ts';

export interface DraftInput extends DraftFields {
  /** All files of the draft; files that are not listed are removed. */
  files?: readonly FileToAttach[];
}

export interface DraftFilter {
  sendStatus?: DraftSendStatus | undefined;
  inboxId?: string | undefined;
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
   * @throws AppError `not_found`, `precondition_failed` if the draft has another version, `payload_too_large`,
   * `permission_denied` if the draft is or becomes scheduled and the credential may not send, `precondition_required` if a
   * person must name the version of such a draft.
   */
  update(
    scope: Scope,
    draftId: string,
    patch: DraftInput,
    precondition?: DraftPrecondition,
  ): Promise<DraftDetails>;
  get(scope: Scope, draftId: string): Promise<DraftDetails>;
  list(scope: Scope, inboxId: string, page: PageRequest): Promise<Page<DraftDetails>>;
  /** Lists the drafts of everything that the credential reaches, in every environment. */
  listAll(scope: Scope, filter: DraftFilter, page: PageRequest): Promise<Page<DraftDetails>>;
  /** @throws AppError `not_found`, `precondition_failed` if the draft has another version. */
  delete(scope: Scope, draftId: string, precondition?: DraftPrecondition): Promise<void>;
  /**
   * Turns the draft into a message: afterwards the draft is deleted, the message is queued and its workflow starts,
   * even if this process crashes right after the commit. If two calls race, one sends and the other finds no draft.
   *
   * @throws AppError `not_found`, `draft_target_not_found`, `no_recipients`, `message_rejected`, `*_suspended`,
   * `usage_limit_exceeded`, `precondition_failed` or `conflict` if the draft has another version, `precondition_required` if
   * a person must name the version, `conflict` if the draft waits for approval or was rejected; the draft is kept in each case.
   * @returns the message, or the draft if it waits for an approval.
   */
  send(
    scope: Scope,
    draftId: string,
    precondition?: DraftPrecondition,
  ): Promise<MessageDetails | DraftDetails>;
  /** See {@link sendDueDraft}. */
  sendDue(draftId: string, scheduleVersion: number): Promise<DueDraftResult>;
  /** Unschedules a draft because an operator ended its workflow, and records the reason in `send_error`. */
  cancelSchedule(draftId: string, scheduleVersion: number): Promise<void>;
}

export interface DraftServiceOptions extends SendDraftOptions {
  database: Database;
}

export function createDraftService({ database, ...options }: DraftServiceOptions): DraftService {
  const { outbox } = options;
  return {
    create: (scope, inboxId, input) =>
      database.transaction(scope, async (transaction) => {
        if (input.sendAt) requirePermission(scope, 'messages:send');
        const inbox = requireActive(await findInbox(transaction.db, scope, inboxId));
        return createWithFiles(transaction, options, { scope, inbox, input });
      }),

    schedule: (scope, inboxId, { sendAt, files, ...content }) =>
      database.transaction(scope, async (transaction) => {
        const inbox = requireActive(await findInbox(transaction.db, scope, inboxId));
        buildEnvelope(content);
        return createWithFiles(transaction, options, {
          scope,
          inbox,
          input: { ...content, sendAt, files: files ?? [] },
        });
      }),

    update: (scope, draftId, patch, precondition = {}) =>
      database.transaction(scope, async (transaction) => {
        const before = await lockDraftRow(transaction, scope, draftId);
        const { files, ...fields } = patch;
        const inbox = requireActive(await findInbox(transaction.db, scope, before.inboxId));
        // Such a draft is sent without another call, so planning or changing it needs the permission to send.
        if (fields.sendAt || ['scheduled', 'pending_approval'].includes(before.sendStatus))
          requirePermission(scope, 'messages:send');
        requirePrecondition(before, precondition);
        if (isSendOfChange(before, fields))
          await requireSeenVersion(transaction.em, scope, before, precondition);
        if (before.submission) throw submittedBytesAreFixed();
        const { kind: lastEditedByKind, id: lastEditedById } = scope.actor;
        const draft = { ...before, lastEditedByKind, lastEditedById };
        const changedFields = setFields(draft, fields);
        const attachments = files
          ? await replaceFiles(transaction.em, { scope, inbox, draftId, files })
          : await findDraftAttachments(transaction.em, draftId);
        if (files) changedFields.push('attachments');
        const { sendAt } = fields;
        if (sendAt !== undefined) changedFields.push('send_at');
        await replanSend(transaction, options, draft, { scope, inbox, sendAt, attachments, changedFields });
        return { draft: await saveDraft(transaction, before, draft), attachments };
      }),

    get: (scope, draftId) =>
      database.read(scope, async (reader) => {
        const draft = await findRow(reader, DraftEntity, { where: { id: draftId, ...withinScope(scope) } });
        if (!draft) throw await draftNotFound(reader, draftId, withinScope(scope));
        const [details] = await loadDetailsForAll(reader, [draft]);
        return details as DraftDetails;
      }),

    list: (scope, inboxId, page) =>
      database.read(scope, async (reader) => {
        await findPresentInbox(reader.db, scope, inboxId);
        const where = { ...withinScope(scope), inboxId };
        const { items, next } = await findPage(reader, DraftEntity, { where, page });
        return { items: await loadDetailsForAll(reader, items), next };
      }),

    delete: (scope, draftId, precondition = {}) =>
      database.transaction(scope, async (transaction) => {
        const draft = await lockDraft(transaction.em, scope, draftId);
        await requireActiveInbox(transaction.em, draft.inboxId);
        requirePrecondition(draft, precondition);
        voidApproval(transaction, outbox, draft);
        if (draft.sendStatus === 'scheduled') signalUnscheduled(transaction, outbox, draft);
        await options.events.redact(transaction, [draftId]);
        await forgetResponses(transaction.em, [draftId]);
        transaction.em.remove(draft);
      }),

    listAll: (scope, { sendStatus, inboxId }, page) =>
      database.read(scope, async (reader) => {
        if (inboxId !== undefined) await readInboxWithinReach(reader, scope, inboxId);
        const where = {
          ...withinReach(scope),
          ...(sendStatus === undefined ? {} : { sendStatus }),
          ...(inboxId === undefined ? {} : { inboxId }),
        };
        const { items, next } = await findPage(reader, DraftEntity, { where, page });
        return { items: await loadDetailsForAll(reader, items), next };
      }),

    send: (scope, draftId, precondition = {}) =>
      database.transaction(scope, async (transaction) => {
        const draft = await lockDraft(transaction.em, scope, draftId);
        if (!scope.sendRefusal) await requireSendable(transaction, scope, draft, precondition);
        return sendOrRequestApproval(transaction, options, scope, draft).catch((error: unknown) => {
          throw scope.permissions.has('drafts:read') ? error : withoutDraftContent(error);
        });
      }),

    sendDue: (draftId, scheduleVersion) => sendDueDraft({ ...options, database }, draftId, scheduleVersion),

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

/** Whether the changed draft is sent in the name of the caller who changes it, without another call. */
function isSendOfChange({ sendStatus }: Row<Draft>, { sendAt }: DraftInput): boolean {
  if (sendStatus === 'pending_approval' || sendAt === null) return false;
  return sendAt !== undefined || sendStatus === 'scheduled';
}

/** @throws AppError as {@link DraftService.send} for the state and version of the draft. */
async function requireSendable(
  reader: RowReader,
  scope: Scope,
  draft: Draft,
  precondition: DraftPrecondition,
): Promise<void> {
  const isPerson = scope.actor.kind === 'user';
  requirePrecondition(draft, precondition);
  if (isPerson && draft.sendStatus === 'pending_approval') throw mustBeApproved(draft);
  if (!isPerson && draft.sendStatus === 'rejected' && draft.decidedById) throw wasRejected(draft);
  await requireSeenVersion(reader, scope, draft, precondition);
}

async function sendOrRequestApproval(
  transaction: Transaction,
  options: SendDraftOptions,
  scope: Scope,
  draft: Draft,
): Promise<MessageDetails | DraftDetails> {
  const { em } = transaction;
  const wasPending = draft.sendStatus === 'pending_approval';
  // What waits keeps waiting for a person, whatever the policy is now.
  const sent = await sendDraft(transaction, draft, options, { scope, isWaiting: wasPending });
  if (sent !== 'needs_approval') return sent;
  const attachments = await findDraftAttachments(em, draft.id);
  if (!wasPending) {
    const inbox = await findInbox(em, scope, draft.inboxId);
    const request = { inbox, actor: scope.actor, attachmentCount: attachments.length };
    await requestApproval(transaction, options, draft, request);
    // It is sent as soon as it is approved.
    draft.sendAt = null;
  }
  return { draft, attachments };
}

function createWithFiles(
  transaction: Transaction,
  options: SendDraftOptions,
  { scope, inbox, input: { files = [], ...fields } }: { scope: Scope; inbox: Row<Inbox>; input: DraftInput },
): Promise<DraftDetails> {
  const attach = async (draftId: string) =>
    files.length === 0 ? [] : attachFiles(transaction.em, { scope, inbox, files, draftId });
  return createDraft(transaction, options, { scope, inbox, fields, attach });
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

async function replaceFiles(
  em: EntityManager,
  {
    scope,
    inbox,
    draftId,
    files,
  }: { scope: Scope; inbox: Row<Inbox>; draftId: string; files: readonly FileToAttach[] },
): Promise<Attachment[]> {
  const current = await findDraftAttachments(em, draftId);
  const attachments = await attachFiles(em, { scope, inbox, files, draftId });
  const kept = new Set(attachments.map(({ id }) => id));
  const removed = current.flatMap(({ id }) => (kept.has(id) ? [] : [id]));
  if (removed.length > 0) await dbOf(em).deleteFrom('attachments').where('id', '=', anyOf(removed)).execute();
  await saveAttachments(dbOf(em), attachments);
  return attachments;
}

function mustBeApproved({ id, version }: Draft): AppError {
  return new AppError('conflict', {
    detail: 'The draft waits for an approval, which is bound to its version.',
    fix: `Review it, then approve it: POST /api/v1/drafts/${id}/approve with {"version": ${version}}.`,
    extensions: { version },
  });
}

function wasRejected({ version }: Draft): AppError {
  return new AppError('conflict', {
    detail: 'An approver rejected this version of the draft.',
    fix: 'Read the reason in send_error, change the draft, then send it again.',
    extensions: { version },
  });
}

function submittedBytesAreFixed(): AppError {
  return new AppError('conflict', {
    detail: 'The draft is a message that was submitted over SMTP, whose bytes do not change.',
    fix: 'Delete the draft and submit the changed message.',
  });
}
