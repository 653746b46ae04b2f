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
import { createExportCompletion, type ExportCompletion } from './export-completion.ts';
import { ExportSegmentEntity } from './export-segment.entity.ts';
import { openCheckpoints, PartBuffer, StaleCheckpointError, toProgress } from './part-buffer.ts';
import { createPartSender } from './part-sender.ts';
import { withReadAhead } from './read-ahead.ts';

export interface WriteOptions {
  /** Milliseconds since 1970. After this the position is written down, and the call returns. */
  deadlineMs: number;
  /** Aborted: the call throws its reason. */
  signal?: AbortSignal;
  onProgress?: (progress: string) => void;
}

export interface ExportRunner extends Omit<ExportCompletion, 'complete'> {
  /**
   * Writes on at the archive, for a while or to its end. What is in a part that was put stays; after a crash the next
   * call, wherever it is, goes on behind it.
   *
   * @throws StorageError `unavailable`.
   */
  write(exportId: string, options: WriteOptions): Promise<ExportProgress>;
}

export interface ExportRunnerOptions extends ArchiveWriterOptions {
  database: Database;
  storage: Pick<Storage, 'getRange' | 'sizeOf' | 'multipartUploads'>;
  notifications: NotificationService;
  /** Smallest part; S3 takes 5 MiB at least. */
  minPartBytes?: number;
  now?: () => Date;
}

const MIN_PART_BYTES = 5 * 1024 * 1024;
/** An archive nobody finished within this has no row that refers to it. */
const UNFINISHED_RETENTION_MS = 7 * 24 * 3_600_000;
/** More than this is not written into the row between two parts: as SQL it is in memory several times. */
const MAX_CARRY_BYTES = 1024 * 1024;
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

  /** Makes room for the parts. Of two workers that begin, one does. */
  async function begin(row: Export): Promise<void> {
    const startedAt = now();
    const measured = await estimateArchive(database, row.organizationId);
    const uploadId = await uploads.create(row.storageKey, CONTENT_TYPE);
    const begun = await database.systemTransaction(async ({ em }) => {
      await releaseObject(em, {
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
          partSizeBytes: choosePartSize(measured.bytes, minPartBytes),
          position: writer.initialPosition(measured.bytes > ZIP64_THRESHOLD_BYTES),
          rowsTotal: measured.rows,
          filesTotal: measured.files,
        },
      );
    });
    if (begun === 0) await uploads.abort(row.storageKey, uploadId);
  }

  /** Nothing of it can be used: storage has lost it, or an earlier release began it. */
  async function reset(row: Export): Promise<void> {
    await database.systemTransaction(async ({ em }) => {
      const reset = await em.nativeUpdate(
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
      if (reset > 0) await em.nativeDelete(ExportSegmentEntity, { exportId: row.id });
    });
    if (row.uploadId) await uploads.abort(row.storageKey, row.uploadId);
  }

  async function continueArchive(
    row: Export,
    position: ArchivePosition,
    { deadlineMs: until, signal, onProgress: progressed }: WriteOptions,
  ): Promise<void> {
    const archive = new PartBuffer({ ...row, position });
    const checkpoints = await openCheckpoints(database, row);
    const sender = createPartSender({ buffer: archive, checkpoints, put: createPartUploader(row), now });
    const { id, organizationId, requestedBy } = row;
    const startedAt = row.startedAt ?? row.createdAt;
    const of = { id, organizationId, requestedBy, startedAt, files: withReadAhead(storage) };
    try {
      while (!writer.isComplete(archive.position)) {
        signal?.throwIfAborted();
        if (writer.readsCheckpoints(archive.position)) await sender.saveCheckpoint();
        archive.add(await writer.writeStep(of, archive.position));
        if (archive.hasFullPart) await sender.sendFullParts();
        progressed?.(formatProgress({ ...row, ...toProgress(archive.position) }));
        if (now().getTime() < until || archive.unsentBytes > MAX_CARRY_BYTES) continue;
        return await sender.saveCheckpoint();
      }
      signal?.throwIfAborted();
      await sender.sendLastPart();
    } finally {
      await sender.settled();
    }
    await completion.complete(row, { sizeBytes: archive.position.offset, checkpoint: checkpoints.number });
  }

  function createPartUploader({ storageKey, uploadId }: Export) {
    return (number: number, bytes: Buffer) => uploads.uploadPart(storageKey, uploadId ?? '', number, bytes);
  }

  return {
    async write(exportId, writeOptions) {
      let row = await find(exportId);
      if (row?.status === 'queued') {
        await begin(row);
        row = await find(exportId);
      }
      if (!row) return { status: 'gone', progress: 'The export is gone.' };
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
      return { status: row?.status ?? 'gone', progress: row ? formatProgress(row) : '' };
    },

    abort: completion.abort,
    cleanUp: completion.cleanUp,
  };
}

/** Beyond this some file of the archive may have more than 4 GiB. */
const ZIP64_THRESHOLD_BYTES = 1024 ** 3;

function isUploadLost(error: unknown): boolean {
  return error instanceof StorageError && (error.failure === 'missing' || error.failure === 'mismatched');
}

function formatProgress(
  row: Pick<Export, 'rowsDone' | 'rowsTotal' | 'filesDone' | 'filesTotal' | 'sizeBytes'>,
): string {
  return `${row.filesDone} of ${row.filesTotal} files, ${row.rowsDone} of ${row.rowsTotal} rows, ${row.sizeBytes} bytes`;
}
