import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { findRow, findRows, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { AttachmentEntity } from '../attachments/attachment.entity.ts';
import { isOrganizationWide, type Scope, withinScope } from '../identity/scope.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { MessageEntity } from '../messages/message.entity.ts';
import type { DraftDetails } from './create-draft.ts';
import { type Draft, DraftEntity } from './draft.entity.ts';

/** Where approvals reach: every environment, for a credential of the whole organization that selects none. */
export const withinReach = (scope: Scope) =>
  isOrganizationWide(scope) && !scope.environmentSelected
    ? { organizationId: scope.organizationId }
    : withinScope(scope);

/**
 * @param where the rows that the credential reaches.
 * @throws AppError `not_found`.
 */
export async function lockDraft(
  em: EntityManager,
  scope: Scope,
  draftId: string,
  where: ReturnType<typeof withinReach> = withinScope(scope),
): Promise<Draft> {
  const draft = await em.findOne(
    DraftEntity,
    { id: draftId, ...where },
    { lockMode: LockMode.PESSIMISTIC_WRITE },
  );
  if (!draft) throw await draftNotFound(em, draftId, where);
  return draft;
}

/** As {@link lockDraft}, for `saveDraft`: the row is locked, but its changes are not tracked. @throws AppError `not_found`. */
export async function lockDraftRow(reader: RowReader, scope: Scope, draftId: string): Promise<Row<Draft>> {
  const where = withinScope(scope);
  const draft = await findRow(reader, DraftEntity, { where: { id: draftId, ...where }, forUpdate: true });
  if (!draft) throw await draftNotFound(reader, draftId, where);
  return draft;
}

/** Names the message that the draft became, if it was sent. */
export async function draftNotFound(
  reader: RowReader,
  draftId: string,
  where: ReturnType<typeof withinReach>,
): Promise<AppError> {
  const message = await findRow(reader, MessageEntity, { where: { draftId, ...where } });
  if (!message) return notFound('draft', draftId);
  return new AppError('not_found', {
    detail: `The draft ${draftId.slice(0, 64)} was sent and is now the message ${message.id}.`,
    fix: `Use the message: GET /api/v1/messages/${message.id}.`,
    extensions: { message_id: message.id },
  });
}

/** Loads the attachments of all drafts in one statement. */
export async function loadDetailsForAll(reader: RowReader, drafts: Row<Draft>[]): Promise<DraftDetails[]> {
  if (drafts.length === 0) return [];
  const ids = drafts.map(({ id }) => id);
  const attachments = await findRows(reader, AttachmentEntity, {
    where: { draftId: { $in: ids } },
    orderBy: { position: 'asc' },
  });
  const attachmentsByDraftId = Map.groupBy(attachments, ({ draftId }) => draftId);
  return drafts.map((draft) => ({ draft, attachments: attachmentsByDraftId.get(draft.id) ?? [] }));
}

export function versionConflict(draft: Row<Draft>): AppError {
  return new AppError('conflict', {
    detail: `The draft was changed in the meantime; its version is now ${draft.version}.`,
    fix: 'Fetch the draft again, look at its changes, and repeat the request with its current version.',
    extensions: { version: draft.version },
  });
}

/** @throws AppError `not_found`, including for a deleted inbox. */
export async function readInboxWithinReach(reader: RowReader, scope: Scope, inboxId: string): Promise<void> {
  const inbox = await findRow(reader, InboxEntity, { where: inboxWithinReach(scope, inboxId) });
  if (!inbox) throw notFound('inbox', inboxId);
}

function inboxWithinReach(scope: Scope, inboxId: string) {
  const { inboxId: boundTo = inboxId, ...place } = withinReach(scope) as ReturnType<typeof withinScope>;
  return { ...place, id: boundTo === inboxId ? inboxId : '', deletedAt: null };
}
