import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { MultipartUploads } from '../../platform/multipart-uploads.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { releaseObject } from '../stored-objects/unclaimed-objects.ts';
import { type Export, ExportEntity, UNFINISHED_STATUSES } from './export.entity.ts';

export interface ExportCompletionOptions {
  database: Database;
  storage: { multipartUploads: Pick<MultipartUploads, 'abort'> };
  notifications: Pick<NotificationService, 'notifyOwners'>;
  now: () => Date;
}

/** An archive whose upload is complete. */
interface WrittenArchive
  extends Pick<Export, 'id' | 'organizationId' | 'requestedBy' | 'storageKey' | 'sizeBytes'> {
  uploadId: string;
}

/** How long an archive is available. */
const AVAILABLE_MS = 24 * 3_600_000;
/** The object outlives the availability, since the last download link is valid for a day. */
const DELETE_DELAY_MS = 25 * 3_600_000;
const MAX_DETAIL_CHARACTERS = 1_000;
/** After this delay the writing activity has ended, and usually the run has cleaned up. */
const CLEANUP_DELAY_MS = 5 * 60_000;
const CLEANED_AT_A_TIME = 20;
const UNSUCCESSFUL_STATUSES = ['failed', 'canceled', 'expired'] as const;

/** Ends exports. */
export function createExportCompletion({ database, storage, notifications, now }: ExportCompletionOptions) {
  const uploads = storage.multipartUploads;

  async function removeUpload(
    row: Pick<Export, 'id' | 'organizationId' | 'storageKey' | 'uploadId'>,
  ): Promise<void> {
    if (row.uploadId) await uploads.abort(row.storageKey, row.uploadId);
    await database.systemTransaction(async ({ db }) => {
      await db
        .updateTable('exports')
        .set({ upload_id: null, updated_at: now() })
        .where('id', '=', row.id)
        .where('upload_id', '=', row.uploadId)
        .execute();
      // The upload may have been completed at the same time.
      await releaseObject(db, { ...row, dueAt: now() });
    });
  }

  return {
    /**
     * Makes the archive available and notifies the owners; deletes the archive if the export was canceled in the
     * meantime.
     */
    complete: (archive: WrittenArchive): Promise<void> =>
      database.systemTransaction(async (transaction) => {
        const { db } = transaction;
        const completedAt = now();
        const expiresAt = new Date(completedAt.getTime() + AVAILABLE_MS);
        if (await markReady(db, archive, { completedAt, expiresAt })) {
          const dueAt = new Date(expiresAt.getTime() + DELETE_DELAY_MS);
          await releaseObject(db, { ...archive, dueAt });
          await notifyOwners(transaction, notifications, { ...archive, expiresAt });
        } else if (!(await isInUse(db, archive.id)))
          await releaseObject(db, { ...archive, dueAt: completedAt });
      }),

    /** Ends an unfinished export and removes its upload. Returns its status. */
    async abort(exportId: string, status: 'failed' | 'canceled', detail: string): Promise<string> {
      const row = await database.systemTransaction(async ({ db }) => {
        const completedAt = now();
        const ended = await db
          .updateTable('exports')
          .set({
            status,
            status_detail: detail.slice(0, MAX_DETAIL_CHARACTERS),
            completed_at: completedAt,
            updated_at: completedAt,
          })
          .where('id', '=', exportId)
          .where('status', 'in', UNFINISHED_STATUSES)
          .returning(columnsOf(ExportEntity))
          .executeTakeFirst();
        return ended ?? (await findExport(db, exportId));
      });
      if (row && row.status !== 'ready' && row.uploadId) await removeUpload(row);
      return row?.status ?? 'not_found';
    },

    /**
     * Expires archives whose availability has ended, and removes uploads of exports whose run was terminated.
     *
     * @returns how many exports were changed.
     */
    async cleanUp(): Promise<number> {
      const { numUpdatedRows } = await database.db
        .updateTable('exports')
        .set({ status: 'expired', updated_at: now() })
        .where('status', '=', 'ready')
        .where('expires_at', '<=', now())
        .executeTakeFirst();
      const left = await database.db
        .selectFrom('exports')
        .select(['id', 'org_id as organizationId', 'storage_key as storageKey', 'upload_id as uploadId'])
        .where('upload_id', 'is not', null)
        .where('status', 'in', UNSUCCESSFUL_STATUSES)
        .where('updated_at', '<', new Date(now().getTime() - CLEANUP_DELAY_MS))
        .orderBy('updated_at')
        .limit(CLEANED_AT_A_TIME)
        .execute();
      for (const row of left) await removeUpload(row);
      return Number(numUpdatedRows) + left.length;
    },
  };
}

/** @returns false if the export was canceled or another worker has taken it over. */
async function markReady(
  db: Db,
  { id, uploadId, sizeBytes }: WrittenArchive,
  { completedAt, expiresAt }: { completedAt: Date; expiresAt: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('exports')
    .set((eb) => ({
      status: 'ready',
      upload_id: null,
      size_bytes: sizeBytes,
      // The totals were an estimate.
      rows_total: eb.ref('rows_done'),
      files_total: eb.ref('files_done'),
      completed_at: completedAt,
      expires_at: expiresAt,
      updated_at: completedAt,
    }))
    .where('id', '=', id)
    .where('status', '=', 'running')
    .where('upload_id', '=', uploadId)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

/** Whether another worker writes, or has written, the object of the export. */
async function isInUse(db: Db, exportId: string): Promise<boolean> {
  const row = await findExport(db, exportId);
  return row?.status === 'queued' || row?.status === 'running' || row?.status === 'ready';
}

const findExport = (db: Db, exportId: string) =>
  db.selectFrom('exports').select(columnsOf(ExportEntity)).where('id', '=', exportId).executeTakeFirst();

async function notifyOwners(
  transaction: Transaction,
  notifications: Pick<NotificationService, 'notifyOwners'>,
  { id, organizationId, requestedBy, sizeBytes, expiresAt }: WrittenArchive & { expiresAt: Date },
): Promise<void> {
  const key = await transaction.db
    .selectFrom('api_keys')
    .select('name')
    .where('id', '=', requestedBy)
    .where('org_id', '=', organizationId)
    .executeTakeFirst();
  await notifications.notifyOwners(transaction, {
    organizationId,
    template: 'export-ready',
    params: {
      organizationId,
      exportId: id,
      keyId: requestedBy,
      keyName: key?.name ?? null,
      sizeBytes,
      expiresAt: formatUtc(expiresAt),
    },
    dedupeKey: `export-ready/${id}`,
  });
}
