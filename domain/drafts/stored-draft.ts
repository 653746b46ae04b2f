import { sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { compileOnce } from '../../platform/database/compile-once.ts';
import { json } from '../../platform/database/json.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import { columnsWithin, type Scope } from '../identity/scope.ts';
import { type Draft, DraftEntity } from './draft.entity.ts';
import { type DraftPlace, draftNotFound } from './find-draft.ts';

/**
 * @param within the rows that the credential can access.
 * @returns a copy to change, which {@link saveDraft} stores.
 * @throws AppError `not_found`.
 */
export async function lockDraft(
  db: Db,
  scope: Scope,
  draftId: string,
  within: DraftPlace = columnsWithin(scope),
): Promise<Draft> {
  const [draft] = await selectAndLock(db, { ...within, id: draftId });
  if (!draft) throw await draftNotFound(db, draftId, within);
  return { ...draft };
}

const selectAndLock = compileOnce((db, where: DraftPlace & { id: string }) =>
  db
    .selectFrom('drafts')
    .select(columnsOf(DraftEntity))
    .where((eb) => eb.and(where))
    .forUpdate()
    .modifyEnd(PREPARED),
);

/**
 * @returns a copy of a scheduled draft to change, which {@link saveDraft} stores; undefined if the draft is no longer
 * scheduled.
 */
export async function lockScheduledDraft(
  db: Db,
  draftId: string,
  scheduleVersion: number,
): Promise<Draft | undefined> {
  const draft = await db
    .selectFrom('drafts')
    .select(columnsOf(DraftEntity))
    .where('id', '=', draftId)
    .where('schedule_version', '=', scheduleVersion)
    .where('send_status', '=', 'scheduled')
    .forUpdate()
    .executeTakeFirst();
  return draft && { ...draft };
}

/** @returns the draft with its times. Stores its content; its state must be that of a new draft, see {@link saveDraft}. */
export async function insertDraft(db: Db, draft: Draft): Promise<Draft> {
  const [times] = await insert(db, draft);
  if (!times) throw new Error('PostgreSQL returned no inserted draft');
  return { ...draft, ...times };
}

const insert = compileOnce((db, draft: Draft) =>
  db
    .insertInto('drafts')
    .values({
      id: draft.id,
      org_id: draft.organizationId,
      env_id: draft.environmentId,
      inbox_id: draft.inboxId,
      submission: json(draft.submission),
      created_by_kind: draft.createdByKind,
      created_by_id: draft.createdById,
      ...contentOf(draft),
    })
    .returning(['created_at as createdAt', 'updated_at as updatedAt'])
    .modifyEnd(PREPARED),
);

/**
 * Stores a locked draft: the state of its send, and its content if the version has changed.
 *
 * @returns the draft as stored.
 */
export async function saveDraft(
  db: Db,
  draft: Draft,
  { withContent = false }: { withContent?: boolean } = {},
): Promise<Draft> {
  const [saved] = await update(db, { ...draft, withContent });
  if (!saved) throw new Error('A locked draft is gone');
  return saved;
}

const update = compileOnce(
  (db, { withContent, ...draft }: Draft & { withContent: boolean }) =>
    db
      .updateTable('drafts')
      .set({ ...(withContent ? contentOf(draft) : {}), ...stateOf(draft), updated_at: sql`now()` })
      .where('id', '=', draft.id)
      .returning(columnsOf(DraftEntity))
      .modifyEnd(PREPARED),
  ['withContent'],
);

export async function deleteDraft(db: Db, { id }: Draft): Promise<void> {
  await db.deleteFrom('drafts').where('id', '=', id).execute();
}

const contentOf = (draft: Draft) => ({
  thread_id: draft.threadId,
  in_reply_to: draft.inReplyTo,
  forwarded_message_id: draft.forwardedMessageId,
  subject: draft.subject,
  to: json(draft.to),
  cc: json(draft.cc),
  bcc: json(draft.bcc),
  reply_to: json(draft.replyTo),
  text_body: draft.textBody,
  html_body: draft.htmlBody,
  labels: draft.labels,
  headers: json(draft.headers),
  unsubscribe: draft.unsubscribe,
  version: draft.version,
  last_edited_by_kind: draft.lastEditedByKind,
  last_edited_by_id: draft.lastEditedById,
});

const stateOf = (draft: Draft) => ({
  send_at: draft.sendAt,
  send_status: draft.sendStatus,
  send_error: draft.sendError,
  schedule_version: draft.scheduleVersion,
  requested_by_kind: draft.requestedByKind,
  requested_by_id: draft.requestedById,
  approval_requested_at: draft.approvalRequestedAt,
  approval_expires_at: draft.approvalExpiresAt,
  approval_generation: draft.approvalGeneration,
  approval_announced: draft.approvalAnnounced,
  approval_review: json(draft.approvalReview),
  ...(draft.approvalHistory === undefined ? {} : { approval_history: json(draft.approvalHistory) }),
  approved_version: draft.approvedVersion,
  decided_by_id: draft.decidedById,
  decided_at: draft.decidedAt,
  decision_note: draft.decisionNote,
});
