import { sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { deleteStoredResponses } from '../../platform/idempotency/delete-stored-responses.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { attachFiles, findDraftAttachments, replaceDraftFiles } from '../attachments/attach-files.ts';
import type { FileToAttach } from '../attachments/stored-file.ts';
import { columnsWithin, requirePermission, type Scope } from '../identity/scope.ts';
import { findInbox, findPresentInbox, requireActive, requireActiveInbox } from '../inboxes/find-inbox.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import type { MessageDetails } from '../messages/message-details.ts';
import { buildEnvelope, type OutboundContent } from '../outbound/outbound-content.ts';
import { createDraft, type DraftFields, setFields } from './create-draft.ts';
import { type Draft, DraftEntity, type DraftSendStatus } from './draft.entity.ts';
import { requestApproval, voidApproval } from './draft-approval.ts';
import { type DraftPrecondition, requirePrecondition, requireSeenVersion } from './draft-precondition.ts';
import { signalUnscheduled } from './draft-schedule.ts';
import {
  type DraftDetails,
  type DraftPlace,
  findDraft,
  loadDetailsForAll,
  requireInboxWithinReach,
  withinReach,
} from './find-draft.ts';
import { replanSend } from './plan-send.ts';
import { type DueDraftResult, type SendDraftOptions, sendDraft, sendDueDraft } from './send-draft.ts';
import { deleteDraft, lockDraft, saveDraft } from './stored-draft.ts';

export interface DraftInput extends DraftFields {
  /** All files of the draft; files that are not listed are removed. */
  files?: readonly FileToAttach[];
}

export interface DraftFilter {
  sendStatus?: DraftSendStatus | undefined;
  inboxId?: string | undefined;
}

export type { DraftDetails };

export type DraftService = ReturnType<typeof createDraftService>;

export interface DraftServiceOptions extends SendDraftOptions {
  database: Database;
}

export function createDraftService({ database, ...options }: DraftServiceOptions) {
  const { outbox } = options;
  return {
    /**
     * @throws AppError `not_found` for the inbox or a file, `payload_too_large`, `permission_denied` if `sendAt` is given
     * without `messages:send`.
     */
    create: (scope: Scope, inboxId: string, input: DraftInput): Promise<DraftDetails> =>
      database.transaction(scope, async (transaction) => {
        if (input.sendAt) requirePermission(scope, 'messages:send');
        const inbox = requireActive(await findInbox(transaction.db, scope, inboxId));
        return createWithFiles(transaction, options, { scope, inbox, input });
      }),

    /**
     * Creates a scheduled draft, for calls that would otherwise send immediately.
     *
     * @throws AppError `not_found`, `no_recipients`, `payload_too_large`.
     */
    schedule: (
      scope: Scope,
      inboxId: string,
      {
        sendAt,
        files,
        ...content
      }: OutboundContent & { sendAt: Date; files?: readonly FileToAttach[] | undefined },
    ): Promise<DraftDetails> =>
      database.transaction(scope, async (transaction) => {
        const inbox = requireActive(await findInbox(transaction.db, scope, inboxId));
        buildEnvelope(content);
        const input = { ...content, sendAt, files: files ?? [] };
        return createWithFiles(transaction, options, { scope, inbox, input });
      }),

    /**
     * @throws AppError `not_found`, `precondition_failed` if the draft has another version, `payload_too_large`,
     * `permission_denied` if the draft is or becomes scheduled and the credential may not send, `precondition_required` if a
     * person must name the version of such a draft.
     */
    update: (
      scope: Scope,
      draftId: string,
      patch: DraftInput,
      precondition: DraftPrecondition = {},
    ): Promise<DraftDetails> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const draft = await lockDraft(db, scope, draftId);
        const { files, ...fields } = patch;
        const [foundInbox, ownFiles] = await Promise.all([
          findInbox(db, scope, draft.inboxId),
          files ? [] : findDraftAttachments(db, draftId),
        ]);
        const inbox = requireActive(foundInbox);
        // Such a draft is sent without another call, so planning or changing it needs the permission to send.
        if (fields.sendAt || ['scheduled', 'pending_approval'].includes(draft.sendStatus))
          requirePermission(scope, 'messages:send');
        requirePrecondition(draft, precondition);
        if (isSendOfChange(draft, fields)) await requireSeenVersion(db, scope, draft, precondition);
        if (draft.submission) throw submittedBytesAreFixed();
        draft.lastEditedByKind = scope.actor.kind;
        draft.lastEditedById = scope.actor.id;
        const changedFields = setFields(draft, fields);
        const attachments = files ? await replaceDraftFiles(db, { scope, inbox, draftId, files }) : ownFiles;
        if (files) changedFields.push('attachments');
        const { sendAt } = fields;
        if (sendAt !== undefined) changedFields.push('send_at');
        await replanSend(transaction, options, draft, { scope, inbox, sendAt, attachments, changedFields });
        return { draft: await saveDraft(db, draft, { withContent: true }), attachments };
      }),

    get: (scope: Scope, draftId: string): Promise<DraftDetails> =>
      database.read(scope, async ({ db }) => {
        const draft = await findDraft(db, draftId, columnsWithin(scope));
        const [details] = await loadDetailsForAll(db, [draft]);
        return details as DraftDetails;
      }),

    list: (scope: Scope, inboxId: string, page: PageRequest): Promise<Page<DraftDetails>> =>
      database.read(scope, async ({ db }) => {
        await findPresentInbox(db, scope, inboxId);
        return listDrafts(db, { ...columnsWithin(scope), inbox_id: inboxId }, page);
      }),

    /** @throws AppError `not_found`, `precondition_failed` if the draft has another version. */
    delete: (scope: Scope, draftId: string, precondition: DraftPrecondition = {}): Promise<void> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const draft = await lockDraft(db, scope, draftId);
        await requireActiveInbox(db, draft.inboxId);
        requirePrecondition(draft, precondition);
        voidApproval(transaction, outbox, draft);
        if (draft.sendStatus === 'scheduled') signalUnscheduled(transaction, outbox, draft);
        await options.events.redact(transaction, [draftId]);
        await deleteStoredResponses(db, [draftId]);
        await deleteDraft(db, draft);
      }),

    /** Lists all drafts that the credential can access, in every environment. */
    listAll: (
      scope: Scope,
      { sendStatus, inboxId }: DraftFilter,
      page: PageRequest,
    ): Promise<Page<DraftDetails>> =>
      database.read(scope, async ({ db }) => {
        if (inboxId !== undefined) await requireInboxWithinReach(db, scope, inboxId);
        const where = {
          ...withinReach(scope),
          ...(sendStatus === undefined ? {} : { send_status: sendStatus }),
          ...(inboxId === undefined ? {} : { inbox_id: inboxId }),
        };
        return listDrafts(db, where, page);
      }),

    /**
     * Turns the draft into a message: afterwards the draft is deleted, the message is queued and its workflow starts,
     * even if this process crashes right after the commit. If two calls race, one sends and the other finds no draft.
     *
     * @throws AppError `not_found`, `draft_target_not_found`, `no_recipients`, `message_rejected`, `*_suspended`,
     * `usage_limit_exceeded`, `precondition_failed` or `conflict` if the draft has another version, `precondition_required` if
     * a person must name the version, `conflict` if the draft waits for approval or was rejected; the draft is kept in each case.
     * @returns the message, or the draft if it waits for an approval.
     */
    send: (
      scope: Scope,
      draftId: string,
      precondition: DraftPrecondition = {},
    ): Promise<MessageDetails | DraftDetails> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const draft = await lockDraft(db, scope, draftId);
        if (!scope.sendRefusal) await requireSendable(db, scope, draft, precondition);
        return sendOrRequestApproval(transaction, options, scope, draft).catch((error: unknown) => {
          throw scope.permissions.has('drafts:read') ? error : withoutDraftContent(error);
        });
      }),

    /** See {@link sendDueDraft}. */
    sendDue: (draftId: string, scheduleVersion: number): Promise<DueDraftResult> =>
      sendDueDraft({ ...options, database }, draftId, scheduleVersion),

    /** Unschedules a draft because an operator ended its workflow, and records the reason in `send_error`. */
    async cancelSchedule(draftId: string, scheduleVersion: number): Promise<void> {
      await database.db
        .updateTable('drafts')
        .set({
          send_status: 'draft',
          send_at: null,
          send_error: 'An operator ended the workflow of the scheduled send.',
          updated_at: sql`now()`,
        })
        .where('id', '=', draftId)
        .where('schedule_version', '=', scheduleVersion)
        .where('send_status', '=', 'scheduled')
        .execute();
    },
  };
}

async function listDrafts(
  db: Db,
  where: Partial<DraftPlace> & { send_status?: DraftSendStatus },
  page: PageRequest,
): Promise<Page<DraftDetails>> {
  const { items, next } = await findPage(
    db
      .selectFrom('drafts')
      .select(columnsOf(DraftEntity))
      .where((eb) => eb.and(where)),
    'drafts.id',
    page,
  );
  return { items: await loadDetailsForAll(db, items), next };
}

/** Whether the changed draft will be sent on behalf of the caller who changes it, without another call. */
function isSendOfChange({ sendStatus }: Draft, { sendAt }: DraftInput): boolean {
  if (sendStatus === 'pending_approval' || sendAt === null) return false;
  return sendAt !== undefined || sendStatus === 'scheduled';
}

/** @throws AppError as {@link DraftService.send} for the state and version of the draft. */
async function requireSendable(
  db: Db,
  scope: Scope,
  draft: Draft,
  precondition: DraftPrecondition,
): Promise<void> {
  const isPerson = scope.actor.kind === 'user';
  requirePrecondition(draft, precondition);
  if (isPerson && draft.sendStatus === 'pending_approval') throw approvalRequired(draft);
  if (!isPerson && draft.sendStatus === 'rejected' && draft.decidedById) throw wasRejected(draft);
  await requireSeenVersion(db, scope, draft, precondition);
}

async function sendOrRequestApproval(
  transaction: Transaction,
  options: SendDraftOptions,
  scope: Scope,
  draft: Draft,
): Promise<MessageDetails | DraftDetails> {
  const { db } = transaction;
  const wasPending = draft.sendStatus === 'pending_approval';
  // A draft that waits for approval keeps waiting, even if the policy no longer requires approval.
  const sent = await sendDraft(transaction, draft, options, { scope, isWaiting: wasPending });
  if (!('needsApproval' in sent)) return sent;
  const attachments = await findDraftAttachments(db, draft.id);
  if (wasPending) return { draft, attachments };
  const inbox = await findInbox(db, scope, draft.inboxId);
  const { alarmMessageId } = sent;
  const request = { inbox, actor: scope.actor, attachmentCount: attachments.length, alarmMessageId };
  await requestApproval(transaction, options, draft, request);
  // The draft is sent as soon as it is approved.
  draft.sendAt = null;
  return { draft: await saveDraft(db, draft), attachments };
}

function createWithFiles(
  transaction: Transaction,
  options: SendDraftOptions,
  { scope, inbox, input: { files = [], ...fields } }: { scope: Scope; inbox: Inbox; input: DraftInput },
): Promise<DraftDetails> {
  const attach = async (draftId: string) =>
    files.length === 0 ? [] : attachFiles(transaction.db, { scope, inbox, files, draftId });
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

function approvalRequired({ id, version }: Draft): AppError {
  return new AppError('conflict', {
    detail: 'The draft waits for an approval, which is bound to its version.',
    fix: `Review it, then approve it: POST /api/v1/drafts/${id}/approve with {"version": ${version}}.`,
    extensions: { version },
  });
}

function wasRejected({ version }: Draft): AppError {
  return new AppError('conflict', {
    detail: 'An approver rejected this version of the draft.',
    fix: 'Read the reason in send_error, change the draft (PATCH /api/v1/drafts/{id}), then send it again.',
    extensions: { version },
  });
}

function submittedBytesAreFixed(): AppError {
  return new AppError('conflict', {
    detail: 'The draft is a message that was submitted over SMTP, whose bytes do not change.',
    fix: 'Delete the draft (DELETE /api/v1/drafts/{id}) and submit the changed message.',
  });
}
