import { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { findRows, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { requirePermission, type Scope, withinScope } from '../identity/scope.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { claimObjects } from '../stored-objects/unclaimed-objects.ts';
import { requireStorageQuota } from '../usage/storage-quota.ts';
import { type Attachment, AttachmentEntity } from './attachment.entity.ts';
import { checkAttachmentLimits } from './attachment-limits.ts';
import type { FileMetadata, FileToAttach, StoredFile } from './stored-file.ts';

type Owner = Pick<Inbox, 'id' | 'organizationId' | 'environmentId'>;

/**
 * Returns attachment rows for the given files, in order, for the caller to assign to a message or draft. An unused
 * upload and the draft's own attachments keep their rows and ids. Any other accessible attachment gets another row with
 * the same storage key.
 *
 * @param draftId the draft whose files are replaced; null for a message.
 * @throws AppError `not_found` for an inaccessible attachment, `permission_denied`, `payload_too_large`,
 * `validation_error`, `usage_limit_exceeded` if the new rows exceed the storage limit.
 */
export async function attachFiles(
  em: EntityManager,
  { scope, inbox, files, draftId = null, copies = [] }: AttachRequest,
): Promise<Attachment[]> {
  await claimObjects(
    em,
    files.flatMap((file) => (file.kind === 'stored' ? [file.file.storageKey] : [])),
  );
  const existing = await lockExistingAttachments(em, scope, files);
  const reused = new Set<string>();
  const attachments = files.map((file) => {
    if (file.kind === 'stored') return createAttachment(em, inbox, file.file);
    const row = existing.get(file.attachmentId);
    if (!row) throw notFound('attachment', file.attachmentId);
    requireReadPermission(scope, row, draftId);
    if (reused.has(row.id) || !isReusable(row, inbox, draftId))
      return createAttachment(em, inbox, { ...toStoredFile(row), ...withoutUndefined(file.changes) });
    reused.add(row.id);
    return Object.assign(row, withoutUndefined(file.changes));
  });
  checkAttachmentLimits(attachments);
  const added = [...copies, ...attachments.filter(({ id }) => !reused.has(id))];
  const sizeBytes = added.reduce((sum, row) => sum + row.sizeBytes, 0);
  if (sizeBytes > 0) await requireStorageQuota(em, inbox.organizationId, sizeBytes);
  return attachments.map((attachment, position) => Object.assign(attachment, { draftId, position }));
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
 * Creates rows with the same stored bytes for a forwarded message. The original rows remain locked until the commit.
 */
export async function copyAttachments(
  em: EntityManager,
  messageId: string,
  inbox: Owner,
): Promise<Attachment[]> {
  const originals = await em.find(
    AttachmentEntity,
    { messageId },
    { lockMode: LockMode.PESSIMISTIC_WRITE, orderBy: { position: 'asc', id: 'asc' } },
  );
  return originals.map((row) => createAttachment(em, inbox, toStoredFile(row)));
}

export function findDraftAttachments(em: EntityManager, draftId: string): Promise<Attachment[]> {
  return em.find(AttachmentEntity, { draftId }, { orderBy: { position: 'asc' } });
}

/** The files of a draft for a response, as {@link findDraftAttachments} finds them to change them. */
export function readDraftAttachments(reader: RowReader, draftId: string): Promise<Row<Attachment>[]> {
  return findRows(reader, AttachmentEntity, { where: { draftId }, orderBy: { position: 'asc' } });
}

/**
 * Locks the attachments in a fixed order to prevent deadlocks. The locked rows prevent the deletion of their objects.
 */
async function lockExistingAttachments(
  em: EntityManager,
  scope: Scope,
  files: readonly FileToAttach[],
): Promise<Map<string, Attachment>> {
  const ids = files.flatMap((file) => (file.kind === 'existing' ? [file.attachmentId] : []));
  if (ids.length === 0) return new Map();
  const rows = await em.find(
    AttachmentEntity,
    { id: { $in: [...new Set(ids)] }, ...withinScope(scope) },
    { lockMode: LockMode.PESSIMISTIC_WRITE, orderBy: { id: 'asc' } },
  );
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

function createAttachment(em: EntityManager, inbox: Owner, file: StoredFile): Attachment {
  const row = em.create(AttachmentEntity, {
    id: newId('attachment'),
    organizationId: inbox.organizationId,
    environmentId: inbox.environmentId,
    inboxId: inbox.id,
    messageId: null,
    draftId: null,
    position: 0,
    ...file,
  });
  em.persist(row);
  return row;
}

function toStoredFile(row: Attachment): StoredFile {
  const { filename, contentType, contentId, disposition, storageKey, sizeBytes, sha256 } = row;
  return { filename, contentType, contentId, disposition, storageKey, sizeBytes, sha256 };
}

/** Drops the fields that the caller omitted. */
function withoutUndefined(changes: Partial<FileMetadata>): Partial<FileMetadata> {
  return Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
}
