import { createFairShare, type FairShare, thirdOf } from '../../platform/concurrency/fair-share.ts';
import { createRestWhileBusy } from '../../platform/concurrency/rest-while-busy.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { StorageError } from '../../platform/storage-error.ts';
import { writeZip } from '../../platform/zip.ts';
import type { ExportResult } from '../../workflows/exports/export-organization.contract.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { releaseObject } from '../stored-objects/unclaimed-objects.ts';
import { readArchive } from './archive-contents.ts';
import { ArchiveCounts, type ExportCounts, formatProgress } from './archive-counts.ts';
import { choosePartSize, estimateArchive } from './archive-size.ts';
import { type ArchiveStorage, retryWhileUnavailable, uploadInParts } from './archive-storage.ts';
import { type Export, ExportEntity, UNFINISHED_STATUSES } from './export.entity.ts';
import { createExportCompletion } from './export-completion.ts';
import { lockIfAllowed } from './lock-export.ts';

export interface WriteOptions {
  /** When aborted, the call throws the signal's reason. */
  signal?: AbortSignal;
  onProgress?: (progress: string) => void;
}

export type ExportRunner = ReturnType<typeof createExportRunner>;

export interface ExportRunnerOptions {
  database: Database;
  storage: ArchiveStorage;
  notifications: NotificationService;
  /** Minimum part size; S3 requires 5 MiB. */
  minPartBytes?: number;
  /** How much of a file is in memory at once. */
  maxChunkBytes?: number;
  /** How often progress is saved and the requester's permission is checked again. */
  checkIntervalMs?: number;
  retryDelayMs?: number;
  now?: () => Date;
}

/** Limited, because each export has parts of its archive in memory. */
const MAX_CONCURRENT_EXPORTS = 4;

/** The exports that one worker writes at the same time. */
export const createExportShares = (): FairShare =>
  createFairShare({
    name: 'exports',
    capacity: MAX_CONCURRENT_EXPORTS,
    reserve: thirdOf(MAX_CONCURRENT_EXPORTS),
  });

const MIN_PART_BYTES = 5 * 1024 * 1024;
const CHUNK_BYTES = 1024 * 1024;
const CHECK_INTERVAL_MS = 2_000;
/** When the object of an unfinished export is deleted. */
const UNFINISHED_RETENTION_MS = 7 * 24 * 3_600_000;
const CONTENT_TYPE = 'application/zip';
/** Conservative: above this estimate, a file in the archive could exceed 4 GiB. */
const ZIP64_THRESHOLD_BYTES = 1024 ** 3;

/** The export was canceled, or another worker has taken it over. */
class StoppedError extends Error {}

/** Another worker has taken the export over, because Temporal lost contact with this one. */
class SupersededError extends Error {}

/** An export that this worker writes. */
interface Writing extends Pick<Export, 'id' | 'organizationId' | 'requestedBy' | 'storageKey'> {
  uploadId: string;
  startedAt: Date;
  partBytes: number;
  mayExceed4GiB: boolean;
  totals: Pick<Export, 'rowsTotal' | 'filesTotal'>;
}

export function createExportRunner(options: ExportRunnerOptions) {
  const { database, storage, checkIntervalMs = CHECK_INTERVAL_MS } = options;
  const now = options.now ?? (() => new Date());
  const uploads = storage.multipartUploads;
  const completion = createExportCompletion({ ...options, now });

  const find = (exportId: string) =>
    database.db
      .selectFrom('exports')
      .select(columnsOf(ExportEntity))
      .where('id', '=', exportId)
      .executeTakeFirst();

  /**
   * Begins the archive. First removes what another worker has written, so that the other worker can add nothing more.
   *
   * @returns null if the export has ended, was refused, or was taken over by another worker in the meantime.
   */
  async function start(exportId: string): Promise<Writing | null> {
    const row = await database.systemTransaction((transaction) =>
      lockIfAllowed(transaction, options, { exportId }),
    );
    if (!row) return null;
    const { organizationId, requestedBy, storageKey } = row;
    if (row.uploadId) await uploads.abort(storageKey, row.uploadId);
    const estimate = await estimateArchive(database, organizationId);
    const uploadId = await uploads.create(storageKey, CONTENT_TYPE);
    const startedAt = now();
    const totals = { rowsTotal: estimate.rows, filesTotal: estimate.files };
    const isOurs = await database.systemTransaction(({ db }) =>
      recordStart(db, row, { uploadId, startedAt, ...totals }),
    );
    if (!isOurs) {
      await uploads.abort(storageKey, uploadId);
      return null;
    }
    return {
      id: exportId,
      organizationId,
      requestedBy,
      storageKey,
      uploadId,
      startedAt,
      partBytes: choosePartSize(estimate.bytes, options.minPartBytes ?? MIN_PART_BYTES),
      mayExceed4GiB: estimate.bytes > ZIP64_THRESHOLD_BYTES,
      totals,
    };
  }

  /** Saves the progress. @throws StoppedError */
  async function checkIn({ id, uploadId, totals }: Writing, counts: ArchiveCounts): Promise<void> {
    const mayContinue = await database.systemTransaction(async (transaction) => {
      if (!(await lockIfAllowed(transaction, options, { exportId: id, uploadId }))) return false;
      await saveProgress(transaction.db, id, { ...counts.toProgress(totals), updatedAt: now() });
      return true;
    });
    if (!mayContinue) throw new StoppedError();
  }

  async function writeAndComplete(
    writing: Writing,
    { signal, onProgress }: { signal: AbortSignal; onProgress: WriteOptions['onProgress'] },
  ): Promise<void> {
    const { id, organizationId, requestedBy, storageKey, uploadId, startedAt, totals } = writing;
    const counts = new ArchiveCounts();
    const reportProgress = () => onProgress?.(formatProgress(counts.toProgress(totals)));
    const retrying = retryWhileUnavailable(storage, {
      signal,
      onWait: reportProgress,
      retryDelayMs: options.retryDelayMs,
    });
    const files = readArchive({
      database,
      storage: retrying,
      exportId: id,
      organizationId,
      requestedBy,
      startedAt,
      maxChunkBytes: options.maxChunkBytes ?? CHUNK_BYTES,
      counts,
    });

    /** Stops writing the archive when the export must not continue. */
    async function* observe(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      let checkedAt = Date.now();
      const restWhileBusy = createRestWhileBusy();
      for await (const chunk of chunks) {
        await restWhileBusy();
        signal.throwIfAborted();
        counts.sizeBytes += chunk.length;
        if (Date.now() - checkedAt >= checkIntervalMs) {
          reportProgress();
          await checkIn(writing, counts);
          checkedAt = Date.now();
        }
        yield chunk;
      }
    }

    const archive = observe(writeZip(files, { zip64: writing.mayExceed4GiB }));
    const parts = await uploadInParts(archive, writing.partBytes, (number, bytes) =>
      retrying.uploadPart(storageKey, uploadId, number, bytes),
    );
    await checkIn(writing, counts);
    signal.throwIfAborted();
    await retrying.complete(storageKey, uploadId, parts).catch(async (error: unknown) => {
      if (!(await wasCompleted(error, storageKey, counts.sizeBytes))) throw error;
    });
    await completion.complete({ ...writing, sizeBytes: counts.sizeBytes });
  }

  /** Whether an earlier call completed the upload but its response was lost. */
  async function wasCompleted(error: unknown, storageKey: string, sizeBytes: number): Promise<boolean> {
    const isGone = error instanceof StorageError && error.failure === 'missing';
    return isGone && (await storage.sizeOf(storageKey)) === sizeBytes;
  }

  return {
    /** Returns null if the export no longer exists. */
    async findOrganization(exportId: string): Promise<string | null> {
      return (await find(exportId))?.organizationId ?? null;
    },

    /**
     * Writes the archive, from its beginning to its end. Cancels the export if its requester may no longer export.
     * After a crash, the next call on any worker starts from the beginning.
     *
     * @returns the final status.
     * @throws StorageError, or SupersededError if another worker writes the export.
     */
    async write(exportId: string, writeOptions: WriteOptions = {}): Promise<ExportResult> {
      const writing = await start(exportId);
      const ended = new AbortController();
      const signal = AbortSignal.any([ended.signal, ...(writeOptions.signal ? [writeOptions.signal] : [])]);
      if (writing)
        try {
          await writeAndComplete(writing, { signal, onProgress: writeOptions.onProgress });
        } catch (error) {
          // Files that were being read ahead are no longer needed.
          ended.abort();
          // If this fails, the next attempt or `cleanUp` repeats it.
          await uploads.abort(writing.storageKey, writing.uploadId).catch(() => {});
          if (!(error instanceof StoppedError)) throw error;
        }
      const row = await find(exportId);
      if (!row) return { status: 'not_found', progress: 'The export no longer exists.' };
      const { status } = row;
      if (status === 'queued' || status === 'running')
        throw new SupersededError('Another worker writes the export.');
      return { status, progress: formatProgress(row) };
    },

    abort: completion.abort,
    cleanUp: completion.cleanUp,
  };
}

async function saveProgress(
  db: Db,
  exportId: string,
  progress: ExportCounts & Pick<Export, 'updatedAt'>,
): Promise<void> {
  await db
    .updateTable('exports')
    .set({
      rows_done: progress.rowsDone,
      rows_total: progress.rowsTotal,
      files_done: progress.filesDone,
      files_total: progress.filesTotal,
      size_bytes: progress.sizeBytes,
      updated_at: progress.updatedAt,
    })
    .where('id', '=', exportId)
    .execute();
}

/** If two workers start the export at the same time, only one of them takes it. */
async function recordStart(
  db: Db,
  row: Pick<Export, 'id' | 'organizationId' | 'storageKey' | 'uploadId'>,
  started: Pick<Writing, 'uploadId' | 'startedAt'> & Writing['totals'],
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('exports')
    .set({
      status: 'running',
      upload_id: started.uploadId,
      started_at: started.startedAt,
      updated_at: started.startedAt,
      rows_done: 0,
      rows_total: started.rowsTotal,
      files_done: 0,
      files_total: started.filesTotal,
      size_bytes: 0,
    })
    .where('id', '=', row.id)
    .where('status', 'in', UNFINISHED_STATUSES)
    .where('upload_id', 'is not distinct from', row.uploadId)
    .executeTakeFirst();
  if (numUpdatedRows === 0n) return false;
  const { organizationId, storageKey } = row;
  const dueAt = new Date(started.startedAt.getTime() + UNFINISHED_RETENTION_MS);
  await releaseObject(db, { organizationId, storageKey, dueAt });
  return true;
}
