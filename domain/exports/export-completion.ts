import { LockMode, raw, sql } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { UploadedPart } from '../../platform/multipart-uploads.ts';
import type { Storage } from '../../platform/storage.ts';
import { ApiKeyEntity } from '../api-keys/api-key.entity.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { releaseObject } from '../stored-objects/unclaimed-objects.ts';
import { type Export, ExportEntity } from './export.entity.ts';
import { ExportSegmentEntity } from './export-segment.entity.ts';

/** Ends an export: completes, aborts or cleans up. */
export interface ExportCompletion {
  /** Completes the multipart upload, makes the archive available and notifies the owners. */
  complete(row: Export, archive: { sizeBytes: number; checkpoint: number }): Promise<void>;
  /** Ends an unfinished export and removes its upload. Returns its status. */
  abort(exportId: string, status: 'failed' | 'canceled', detail: string): Promise<string>;
  /**
   * Expires archives that are past their time, and removes uploads of exports whose run was terminated.
   *
   * @returns how many exports were changed.
   */
  cleanUp(): Promise<number>;
}

export interface ExportCompletionOptions {
  database: Database;
  storage: Pick<Storage, 'sizeOf' | 'multipartUploads'>;
  notifications: NotificationService;
  now: () => Date;
}

/** How long an archive is available. */
const AVAILABLE_MS = 24 * 3_600_000;
/** The object outlives the availability, since the last download link is valid for a day. */
const DELETE_DELAY_MS = 25 * 3_600_000;
const CLEARED_UPLOAD = { uploadId: null, position: null, partBuffer: null };
const MAX_DETAIL_CHARACTERS = 1_000;
/** By then the writing activity has ended, and usually the run itself has cleaned up. */
const CLEANUP_DELAY_MS = 5 * 60_000;

export function createExportCompletion({
  database,
  storage,
  notifications,
  now,
}: ExportCompletionOptions): ExportCompletion {
  const uploads = storage.multipartUploads;

  /** Idempotent: after a crash the object may already be complete. */
  async function complete(
    row: Export,
    { sizeBytes, checkpoint }: { sizeBytes: number; checkpoint: number },
  ): Promise<void> {
    if ((await storage.sizeOf(row.storageKey)) !== sizeBytes)
      await uploads.complete(row.storageKey, row.uploadId ?? '', await readParts(database, row.id));
    await database.systemTransaction(async (transaction) => {
      const { em } = transaction;
      const completedAt = now();
      const expiresAt = new Date(completedAt.getTime() + AVAILABLE_MS);
      const ready = await em.nativeUpdate(
        ExportEntity,
        { id: row.id, status: 'running', checkpoint },
        {
          status: 'ready',
          sizeBytes,
          // The totals were an estimate.
          rowsTotal: raw('rows_done'),
          filesTotal: raw('files_done'),
          completedAt,
          expiresAt,
          updatedAt: completedAt,
          ...CLEARED_UPLOAD,
        },
      );
      const dueAt = ready > 0 ? new Date(expiresAt.getTime() + DELETE_DELAY_MS) : completedAt;
      await discardArchive(transaction, row, dueAt);
      await em.nativeDelete(ExportSegmentEntity, { exportId: row.id });
      if (ready > 0) await notifyOwners(transaction, { ...row, sizeBytes, expiresAt });
    });
  }

  async function notifyOwners(
    transaction: Transaction,
    row: Pick<Export, 'id' | 'organizationId' | 'requestedBy' | 'sizeBytes'> & { expiresAt: Date },
  ): Promise<void> {
    const key = await transaction.em.findOne(
      ApiKeyEntity,
      { id: row.requestedBy, organizationId: row.organizationId },
      { fields: ['name'] },
    );
    await notifications.notifyOwners(transaction, {
      organizationId: row.organizationId,
      template: 'export-ready',
      params: {
        organizationId: row.organizationId,
        exportId: row.id,
        keyId: row.requestedBy,
        keyName: key?.name ?? null,
        sizeBytes: row.sizeBytes,
        expiresAt: formatUtc(row.expiresAt),
      },
      dedupeKey: `export-ready/${row.id}`,
    });
  }

  /** Removes the upload and its segments, and the object if it was completed concurrently. */
  async function removeUpload(
    row: Pick<Export, 'id' | 'organizationId' | 'storageKey' | 'uploadId'>,
  ): Promise<void> {
    if (row.uploadId) await uploads.abort(row.storageKey, row.uploadId);
    await database.systemTransaction(async (transaction) => {
      const { em } = transaction;
      await em.nativeDelete(ExportSegmentEntity, { exportId: row.id });
      await em.nativeUpdate(ExportEntity, { id: row.id, uploadId: row.uploadId }, CLEARED_UPLOAD);
      await discardArchive(transaction, row, now());
    });
  }

  return {
    complete,

    async abort(exportId, status, detail) {
      const row = await database.systemTransaction(async ({ em }) => {
        const locked = await em.findOne(
          ExportEntity,
          { id: exportId },
          { lockMode: LockMode.PESSIMISTIC_WRITE },
        );
        if (locked && (locked.status === 'queued' || locked.status === 'running')) {
          const completedAt = now();
          Object.assign(locked, {
            status,
            statusDetail: detail.slice(0, MAX_DETAIL_CHARACTERS),
            completedAt,
          });
        }
        return locked;
      });
      if (row && row.status !== 'ready' && row.uploadId) await removeUpload(row);
      return row?.status ?? 'not_found';
    },

    async cleanUp() {
      const expired = await database.query<{ id: string }>(
        sql`update exports set status = 'expired', updated_at = ${now()}
         where status = 'ready' and expires_at <= ${now()} returning id`,
      );
      const left = await database.query<Parameters<typeof removeUpload>[0]>(
        sql`select id, org_id as "organizationId", storage_key as "storageKey", upload_id as "uploadId" from exports
         where upload_id is not null and status in ('failed', 'canceled', 'expired')
           and updated_at < ${new Date(now().getTime() - CLEANUP_DELAY_MS)}
         order by updated_at limit 20`,
      );
      for (const row of left) await removeUpload(row);
      return expired.length + left.length;
    },
  };
}

async function readParts(database: Database, exportId: string): Promise<UploadedPart[]> {
  const segments = await database.autocommit((em) =>
    em.find(
      ExportSegmentEntity,
      { exportId, partNumber: { $ne: null } },
      { fields: ['partNumber', 'etag'], orderBy: { partNumber: 'asc' } },
    ),
  );
  return segments.map(({ partNumber, etag }) => ({ number: partNumber ?? 0, etag: etag ?? '' }));
}

async function discardArchive(
  { db }: Transaction,
  { storageKey, organizationId }: Pick<Export, 'storageKey' | 'organizationId'>,
  dueAt: Date,
): Promise<void> {
  await releaseObject(db, { organizationId, storageKey, dueAt });
}
