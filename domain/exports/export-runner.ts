import { createFairShare, type FairShare, thirdOf } from '../../platform/concurrency/fair-share.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Storage } from '../../platform/storage.ts';
import { StorageError } from '../../platform/storage-error.ts';
import type { ExportProgress } from '../../workflows/exports/export-organization.contract.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { releaseObject } from '../stored-objects/unclaimed-objects.ts';
import type { ArchivePosition } from './archive-position.ts';
import { choosePartSize, estimateArchive } from './archive-size.ts';
import { type ArchiveWriterOptions, createArchiveWriter } from './archive-writer.ts';
import { type Export, ExportEntity } from './export.entity.ts';
import { openCheckpoints, type Progress, StaleCheckpointError, toProgress } from './export-checkpoints.ts';
import { createExportCompletion, type ExportCompletion } from './export-completion.ts';
import { ExportSegmentEntity } from './export-segment.entity.ts';
import { PartBuffer } from './part-buffer.ts';
import { createPartSender } from './part-sender.ts';
import { withReadAhead } from './read-ahead.ts';
import { refuseIfNotAllowed } from './refuse-export.ts';

export interface WriteOptions {
  /** Milliseconds since 1970. The call saves a checkpoint after this time and returns. */
  deadlineMs: number;
  /** When aborted, the call throws the signal's reason. */
  signal?: AbortSignal;
  onProgress?: (progress: string) => void;
}

export interface ExportRunner extends Omit<ExportCompletion, 'complete'> {
  /**
   * Continues writing the archive, until the deadline or its end. Cancels it if its requester may no longer export. After a crash the next call, on any worker, continues
   * after the last checkpoint.
   *
   * @throws StorageError `unavailable`.
   */
  write(exportId: string, options: WriteOptions): Promise<ExportProgress>;
  /** Null: the export is gone. */
  findOrganization(exportId: string): Promise<string | null>;
}

/** Limited, because each export has parts of its archive in memory. */
const MAX_CONCURRENT_EXPORTS = 2;

/** The exports that one worker writes at the same time. */
export const createExportShares = (): FairShare =>
  createFairShare({
    name: 'exports',
    capacity: MAX_CONCURRENT_EXPORTS,
    reserve: thirdOf(MAX_CONCURRENT_EXPORTS),
  });

export interface ExportRunnerOptions extends ArchiveWriterOptions {
  database: Database;
  storage: Pick<Storage, 'getRange' | 'sizeOf' | 'multipartUploads'>;
  notifications: NotificationService;
  /** Minimum part size; S3 requires 5 MiB. */
  minPartBytes?: number;
  now?: () => Date;
}

const MIN_PART_BYTES = 5 * 1024 * 1024;
/** When the object of an unfinished export is deleted. */
const UNFINISHED_RETENTION_MS = 7 * 24 * 3_600_000;
/** Limit for part bytes saved in the row, since an SQL parameter is held in memory several times. */
const MAX_CHECKPOINT_BYTES = 1024 * 1024;
const CONTENT_TYPE = 'application/zip';

export function createExportRunner(options: ExportRunnerOptions): ExportRunner {
  const { database, storage, notifications, minPartBytes = MIN_PART_BYTES } = options;
  const now = options.now ?? (() => new Date());
  const writer = createArchiveWriter(options);
  const uploads = storage.multipartUploads;
  const completion = createExportCompletion({ database, storage, notifications, now });

  const find = (exportId: string) =>
    database.autocommit((em) =>
      em.findOne(ExportEntity, { id: exportId }, { populate: ['position', 'partBuffer'] }),
    );

  /** Creates the upload. Of two concurrent workers only one starts the export. */
  async function start(row: Export): Promise<void> {
    const startedAt = now();
    const estimate = await estimateArchive(database, row.organizationId);
    const uploadId = await uploads.create(row.storageKey, CONTENT_TYPE);
    const updated = await database.systemTransaction(async ({ db, em }) => {
      await releaseObject(db, {
        organizationId: row.organizationId,
        storageKey: row.storageKey,
        dueAt: new Date(startedAt.getTime() + UNFINISHED_RETENTION_MS),
      });
      return em.nativeUpdate(
        ExportEntity,
        { id: row.id, status: 'queued', checkpoint: row.checkpoint },
        {
          status: 'running',
          uploadId,
          startedAt,
          updatedAt: startedAt,
          checkpoint: row.checkpoint + 1,
          partSizeBytes: choosePartSize(estimate.bytes, minPartBytes),
          position: writer.initialPosition(estimate.bytes > ZIP64_THRESHOLD_BYTES),
          rowsTotal: estimate.rows,
          filesTotal: estimate.files,
        },
      );
    });
    if (updated === 0) await uploads.abort(row.storageKey, uploadId);
  }

  /** Discards what has been written: storage has lost the upload, or another release started the archive. */
  async function reset(row: Export): Promise<void> {
    await database.systemTransaction(async ({ em }) => {
      const updated = await em.nativeUpdate(
        ExportEntity,
        { id: row.id, status: 'running', checkpoint: row.checkpoint },
        {
          status: 'queued',
          uploadId: null,
          position: null,
          partBuffer: null,
          updatedAt: now(),
          checkpoint: row.checkpoint + 1,
          rowsDone: 0,
          filesDone: 0,
          sizeBytes: 0,
        },
      );
      if (updated > 0) await em.nativeDelete(ExportSegmentEntity, { exportId: row.id });
    });
    if (row.uploadId) await uploads.abort(row.storageKey, row.uploadId);
  }

  async function continueArchive(
    row: Export,
    position: ArchivePosition,
    { deadlineMs, signal, onProgress }: WriteOptions,
  ): Promise<void> {
    const buffer = new PartBuffer({ ...row, position });
    const checkpoints = await openCheckpoints(database, row);
    const sender = createPartSender({ buffer, checkpoints, upload: createPartUploader(row), now });
    const { id, organizationId, requestedBy } = row;
    const startedAt = row.startedAt ?? row.createdAt;
    const source = { id, organizationId, requestedBy, startedAt, files: withReadAhead(storage) };
    try {
      while (!writer.isComplete(buffer.position)) {
        signal?.throwIfAborted();
        if (writer.readsCheckpoints(buffer.position)) await sender.saveCheckpoint();
        buffer.add(await writer.writeStep(source, buffer.position));
        if (buffer.hasFullPart) await sender.sendFullParts();
        onProgress?.(formatProgress(toProgress(buffer.position, row)));
        if (now().getTime() < deadlineMs || buffer.unsentBytes > MAX_CHECKPOINT_BYTES) continue;
        return await sender.saveCheckpoint();
      }
      signal?.throwIfAborted();
      await sender.sendLastPart();
    } finally {
      await sender.settled();
    }
    await completion.complete(row, { sizeBytes: buffer.position.offset, checkpoint: checkpoints.number });
  }

  function createPartUploader({ storageKey, uploadId }: Export) {
    return (number: number, bytes: Buffer) => uploads.uploadPart(storageKey, uploadId ?? '', number, bytes);
  }

  return {
    async findOrganization(exportId) {
      return (await find(exportId))?.organizationId ?? null;
    },

    async write(exportId, writeOptions) {
      await refuseIfNotAllowed(options, exportId);
      let row = await find(exportId);
      if (row?.status === 'queued') {
        await start(row);
        row = await find(exportId);
      }
      if (!row) return { status: 'not_found', progress: 'The export no longer exists.' };
      if (row.status === 'running') {
        try {
          if (row.position && writer.isCompatible(row.position))
            await continueArchive(row, row.position, writeOptions);
          else await reset(row);
        } catch (error) {
          if (isUploadLost(error)) await reset((await find(exportId)) ?? row);
          if (!(error instanceof StaleCheckpointError)) throw error;
        }
        row = await find(exportId);
      }
      return { status: row?.status ?? 'not_found', progress: row ? formatProgress(row) : '' };
    },

    abort: completion.abort,
    cleanUp: completion.cleanUp,
  };
}

/** Conservative: above this estimate a file in the archive might exceed 4 GiB. */
const ZIP64_THRESHOLD_BYTES = 1024 ** 3;

function isUploadLost(error: unknown): boolean {
  return error instanceof StorageError && (error.failure === 'missing' || error.failure === 'mismatched');
}

function formatProgress(row: Progress): string {
  return `${row.filesDone} of ${row.filesTotal} files, ${row.rowsDone} of ${row.rowsTotal} rows, ${row.sizeBytes} bytes`;
}
