import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { compileOnce } from '../../platform/database/compile-once.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { columnsWithin, requirePermission, type Scope } from '../identity/scope.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { claimObjects } from '../stored-objects/unclaimed-objects.ts';
import { requireStorageQuota } from '../usage/resource-quotas.ts';
import { type Attachment, AttachmentEntity } from './attachment.entity.ts';
import { checkAttachmentLimits } from './attachment-limits.ts';
import type { FileMetadata, FileToAttach, StoredFile } from './stored-file.ts';

type Owner = Pick<Inbox, 'id' | 'organizationId' | 'environmentId'>;

/**
 * Returns attachment rows for the given files, in order, which {@link saveAttachments} stores. An unused upload and the
 * draft's own attachments keep their rows and ids. Any other accessible attachment gets another row with the same storage
 * key.
 *
 * @param draftId the draft whose files are replaced; null for a message.
 * @throws AppError `not_found` for an inaccessible attachment, `permission_denied`, `payload_too_large`,
 * `validation_error`, `usage_limit_exceeded` if the new rows exceed the storage limit.
 */
export async function attachFiles(
  db: Db,
  { scope, inbox, files, draftId = null, copies = [] }: AttachRequest,
): Promise<Attachment[]> {
  await claimObjects(
    db,
    files.flatMap((file) => (file.kind === 'stored' ? [file.file.storageKey] : [])),
  );
  const existing = await lockExistingAttachments(db, scope, files);
  const reused = new Set<string>();
  const attachments = files.map((file) => {
    if (file.kind === 'stored') return newAttachment(inbox, file.file);
    const row = existing.get(file.attachmentId);
    if (!row) throw notFound('attachment', file.attachmentId);
    requireReadPermission(scope, row, draftId);
    if (reused.has(row.id) || !isReusable(row, inbox, draftId))
      return newAttachment(inbox, { ...toStoredFile(row), ...withoutUndefined(file.changes) });
    reused.add(row.id);
    return { ...row, ...withoutUndefined(file.changes) };
  });
  checkAttachmentLimits(attachments);
  const added = [...copies, ...attachments.filter(({ id }) => !reused.has(id))];
  const sizeBytes = added.reduce((sum, row) => sum + row.sizeBytes, 0);
  if (sizeBytes > 0) await requireStorageQuota(db, inbox.organizationId, sizeBytes);
  return attachments.map((attachment, position) => ({ ...attachment, draftId, position }));
}

export interface AttachRequest {
  scope: Scope;
  inbox: Owner;
  files: readonly FileToAttach[];
  draftId?: string | null;
  /** Copies that `copyAttachments` made for the same message; they count towards the same storage check. */
  copies?: readonly Attachment[];
}

/**
 * Returns rows with the same stored bytes for a forwarded message, which {@link saveAttachments} stores. The original rows
 * remain locked until the commit.
 */
export async function copyAttachments(db: Db, messageId: string, inbox: Owner): Promise<Attachment[]> {
  const originals = await db
    .selectFrom('attachments')
    .select(columnsOf(AttachmentEntity))
    .where('message_id', '=', messageId)
    .orderBy('position')
    .orderBy('id')
    .forUpdate()
    .execute();
  return originals.map((row) => newAttachment(inbox, toStoredFile(row)));
}

/**
 * Stores rows with their owner, name and position. Existing rows that {@link attachFiles} returned are locked, and
 * their other columns do not change. The owner must already exist.
 */
export async function saveAttachments(db: Db, attachments: readonly Attachment[]): Promise<void> {
  if (attachments.length === 0) return;
  await db
    .insertInto('attachments')
    .values(
      attachments.map((row) => ({
        id: row.id,
        org_id: row.organizationId,
        env_id: row.environmentId,
        inbox_id: row.inboxId,
        message_id: row.messageId,
        draft_id: row.draftId,
        position: row.position,
        filename: row.filename,
        content_type: row.contentType,
        size_bytes: row.sizeBytes,
        sha256: row.sha256,
        storage_key: row.storageKey,
        content_id: row.contentId,
        disposition: row.disposition,
        created_at: row.createdAt,
      })),
    )
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet((eb) => ({
        message_id: eb.ref('excluded.message_id'),
        draft_id: eb.ref('excluded.draft_id'),
        position: eb.ref('excluded.position'),
        filename: eb.ref('excluded.filename'),
        content_type: eb.ref('excluded.content_type'),
        content_id: eb.ref('excluded.content_id'),
        disposition: eb.ref('excluded.disposition'),
      })),
    )
    .execute();
}

/** Replaces the files of a locked draft and deletes those that are not given. */
export async function replaceDraftFiles(
  db: Db,
  request: AttachRequest & { draftId: string },
): Promise<Attachment[]> {
  const current = await findDraftAttachments(db, request.draftId);
  const attachments = await attachFiles(db, request);
  const kept = new Set(attachments.map(({ id }) => id));
  const removed = current.flatMap(({ id }) => (kept.has(id) ? [] : [id]));
  if (removed.length > 0) await db.deleteFrom('attachments').where('id', '=', anyOf(removed)).execute();
  await saveAttachments(db, attachments);
  return attachments;
}

export const findDraftAttachments = (db: Db, draftId: string): Promise<Attachment[]> =>
  selectDraftAttachments(db, { draftId });

const selectDraftAttachments = compileOnce((db, { draftId }: { draftId: string }) =>
  db
    .selectFrom('attachments')
    .select(columnsOf(AttachmentEntity))
    .where('draft_id', '=', draftId)
    .orderBy('position')
    .modifyEnd(PREPARED),
);

/**
 * Locks the attachments in a fixed order to prevent deadlocks. The locked rows prevent the deletion of their objects.
 */
async function lockExistingAttachments(
  db: Db,
  scope: Scope,
  files: readonly FileToAttach[],
): Promise<Map<string, Attachment>> {
  const ids = files.flatMap((file) => (file.kind === 'existing' ? [file.attachmentId] : []));
  if (ids.length === 0) return new Map();
  const rows = await db
    .selectFrom('attachments')
    .select(columnsOf(AttachmentEntity))
    .where('id', '=', anyOf([...new Set(ids)]))
    .where((eb) => eb.and(columnsWithin(scope)))
    .orderBy('id')
    .forUpdate()
    .execute();
  return new Map(rows.map((row) => [row.id, row]));
}

/** Without this check, a key that may send but not read could exfiltrate received files. */
function requireReadPermission(
  scope: Scope,
  { messageId, draftId }: Attachment,
  ownDraftId: string | null,
): void {
  if (messageId) requirePermission(scope, 'messages:read');
  else if (draftId && draftId !== ownDraftId) requirePermission(scope, 'drafts:read');
}

function isReusable(row: Attachment, inbox: Owner, draftId: string | null): boolean {
  if (row.inboxId !== inbox.id || row.messageId) return false;
  return !row.draftId || row.draftId === draftId;
}

function newAttachment(inbox: Owner, file: StoredFile): Attachment {
  return {
    id: newId('attachment'),
    organizationId: inbox.organizationId,
    environmentId: inbox.environmentId,
    inboxId: inbox.id,
    messageId: null,
    draftId: null,
    position: 0,
    textKey: null,
    createdAt: new Date(),
    ...file,
  };
}

function toStoredFile(row: Attachment): StoredFile {
  const { filename, contentType, contentId, disposition, storageKey, sizeBytes, sha256 } = row;
  return { filename, contentType, contentId, disposition, storageKey, sizeBytes, sha256 };
}

/** Drops the fields that the caller omitted. */
function withoutUndefined(changes: Partial<FileMetadata>): Partial<FileMetadata> {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
}
