import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { type Attachment, AttachmentEntity } from '../attachments/attachment.entity.ts';
import { columnsWithin, isOrganizationWide, type Scope } from '../identity/scope.ts';
import { type Draft, DraftEntity } from './draft.entity.ts';

/** A draft with its files, in order. */
export interface DraftDetails {
  draft: Draft;
  attachments: Attachment[];
}

/** The columns that select the rows a credential can access. */
export interface DraftPlace {
  org_id: string;
  env_id?: string;
  inbox_id?: string;
}

/**
 * The rows that approvals cover: those of every environment if the credential belongs to the whole organization and
 * selects no environment.
 */
export const withinReach = (scope: Scope): DraftPlace =>
  isOrganizationWide(scope) && !scope.environmentSelected
    ? { org_id: scope.organizationId }
    : columnsWithin(scope);

/** @throws AppError `not_found`. */
export async function findDraft(db: Db, draftId: string, within: DraftPlace): Promise<Draft> {
  const draft = await db
    .selectFrom('drafts')
    .select(columnsOf(DraftEntity))
    .where('id', '=', draftId)
    .where((eb) => eb.and(within))
    .executeTakeFirst();
  if (!draft) throw await draftNotFound(db, draftId, within);
  return draft;
}

/** If the draft was sent, the error names its message. */
export async function draftNotFound(db: Db, draftId: string, within: DraftPlace): Promise<AppError> {
  const message = await db
    .selectFrom('messages')
    .select('id')
    .where('draft_id', '=', draftId)
    .where((eb) => eb.and(within))
    .limit(1)
    .executeTakeFirst();
  if (!message) return notFound('draft', draftId);
  return new AppError('not_found', {
    detail: `The draft ${draftId.slice(0, 64)} was sent and is now the message ${message.id}.`,
    fix: `Use the message: GET /api/v1/messages/${message.id}.`,
    extensions: { message_id: message.id },
  });
}

/** Loads the attachments of all drafts in one statement. */
export async function loadDetailsForAll(db: Db, drafts: readonly Draft[]): Promise<DraftDetails[]> {
  if (drafts.length === 0) return [];
  const attachments = await db
    .selectFrom('attachments')
    .select(columnsOf(AttachmentEntity))
    .where('draft_id', '=', anyOf(drafts.map(({ id }) => id)))
    .orderBy('position')
    .execute();
  const attachmentsByDraftId = Map.groupBy(attachments, ({ draftId }) => draftId);
  return drafts.map((draft) => ({ draft, attachments: attachmentsByDraftId.get(draft.id) ?? [] }));
}

export function versionConflict(draft: Pick<Draft, 'version'>): AppError {
  return new AppError('conflict', {
    detail: `The draft was changed in the meantime; its version is now ${draft.version}.`,
    fix: 'Fetch the draft again (GET /api/v1/drafts/{id}), look at its changes, and repeat the request with its current version.',
    extensions: { version: draft.version },
  });
}

/** @throws AppError `not_found`, including for a deleted inbox. */
export async function requireInboxWithinReach(db: Db, scope: Scope, inboxId: string): Promise<void> {
  const { inbox_id: boundTo = inboxId, ...place } = withinReach(scope);
  const inbox =
    boundTo === inboxId
      ? await db
          .selectFrom('inboxes')
          .select('id')
          .where('id', '=', inboxId)
          .where('deleted_at', 'is', null)
          .where((eb) => eb.and(place))
          .executeTakeFirst()
      : undefined;
  if (!inbox) throw notFound('inbox', inboxId);
}
