import type { Database } from '../../platform/database/database.ts';
import type { Storage } from '../../platform/storage.ts';
import { StorageError } from '../../platform/storage-error.ts';
import type { WrittenSoFar } from '../../workflows/exports/export-organization.contract.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { DiscardedObjectEntity } from '../stored-objects/discarded-object.entity.ts';
import type { ArchivePosition } from './archive-position.ts';
import { measureOrganization, partSizeFor } from './archive-size.ts';
import { type ArchiveWriterOptions, createArchiveWriter } from './archive-writer.ts';
import { type Export, ExportEntity } from './export.entity.ts';
import { createExportEnding, type ExportEnding } from './export-ending.ts';
import { ExportPieceEntity } from './export-piece.entity.ts';
import { checkpointsOf, OpenArchive, progressAt, Superseded } from './open-archive.ts';
import { createPartSender } from './part-sender.ts';
import { readAhead } from './read-ahead.ts';

export interface WriteOptions {
  /** Milliseconds since 1970. After this the position is written down, and the call returns. */
  until: number;
  /** Aborted: the call throws its reason. */
  signal?: AbortSignal;
  progressed?: (progress: string) => void;
}

export interface ExportRunner extends Omit<ExportEnding, 'complete'> {
  /**
   * Writes on at the archive, for a while or to its end. What is in a part that was put stays; after a crash the next
   * call, wherever it is, goes on behind it.
   *
   * @throws StorageError `unavailable`.
   */
  write(exportId: string, options: WriteOptions): Promise<WrittenSoFar>;
}

export interface ExportRunnerOptions extends ArchiveWriterOptions {
  database: Database;
  storage: Pick<Storage, 'getPiece' | 'sizeOf' | 'partUploads'>;
  notifications: NotificationService;
  /** Smallest part; S3 takes 5 MiB at least. */
  minPartBytes?: number;
  now?: () => Date;
}

const MIN_PART_BYTES = 5 * 1024 * 1024;
/** An archive nobody finished within this has no row that refers to it. */
const UNFINISHED_STAY_MS = 7 * 24 * 3_600_000;
/** More than this is not written into the row between two parts: as SQL it is in memory several times. */
const MAX_CARRY_BYTES = 1024 * 1024;
const CONTENT_TYPE = 'application/zip';

export function createExportRunner(options: ExportRunnerOptions): ExportRunner {
  const { database, storage, notifications, minPartBytes = MIN_PART_BYTES } = options;
  const now = options.now ?? (() => new Date());
  const writer = createArchiveWriter(options);
  const uploads = storage.partUploads;
  const ending = createExportEnding({ database, storage, notifications, now });

  const find = (exportId: string) =>
    database.autocommit((em) =>
      em.findOne(ExportEntity, { id: exportId }, { populate: ['position', 'carry'] }),
    );

  /** Makes room for the parts. Of two workers that begin, one does. */
  async function begin(row: Export): Promise<void> {
    const startedAt = now();
    const measured = await measureOrganization(database, row.organizationId);
    const uploadId = await uploads.begin(row.storageKey, CONTENT_TYPE);
    const begun = await database.systemTransaction(async ({ em }) => {
      await em.upsert(DiscardedObjectEntity, {
        storageKey: row.storageKey,
        organizationId: row.organizationId,
        deleting: false,
        dueAt: new Date(startedAt.getTime() + UNFINISHED_STAY_MS),
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
          partSizeBytes: partSizeFor(measured.bytes, minPartBytes),
          position: writer.beginning(measured.bytes > LARGE_BYTES),
          rowsTotal: measured.rows,
          filesTotal: measured.files,
        },
      );
    });
    if (begun === 0) await uploads.abort(row.storageKey, uploadId);
  }

  /** Nothing of it can be used: storage has lost it, or an earlier release began it. */
  async function beginAnew(row: Export): Promise<void> {
    await database.systemTransaction(async ({ em }) => {
      const reset = await em.nativeUpdate(
        ExportEntity,
        { id: row.id, status: 'running', checkpoint: row.checkpoint },
        {
          status: 'queued',
          uploadId: null,
          position: null,
          carry: null,
          updatedAt: now(),
          checkpoint: row.checkpoint + 1,
          rowsDone: 0,
          filesDone: 0,
          sizeBytes: 0,
        },
      );
      if (reset > 0) await em.nativeDelete(ExportPieceEntity, { exportId: row.id });
    });
    if (row.uploadId) await uploads.abort(row.storageKey, row.uploadId);
  }

  async function writeOn(
    row: Export,
    position: ArchivePosition,
    { until, signal, progressed }: WriteOptions,
  ): Promise<void> {
    const archive = new OpenArchive({ ...row, position });
    const checkpoints = await checkpointsOf(database, row);
    const sender = createPartSender({ archive, checkpoints, put: putterOf(row), now });
    const { id, organizationId, requestedBy } = row;
    const startedAt = row.startedAt ?? row.createdAt;
    const of = { id, organizationId, requestedBy, startedAt, files: readAhead(storage) };
    try {
      while (!writer.isComplete(archive.position)) {
        signal?.throwIfAborted();
        if (writer.readsBack(archive.position)) await sender.noteAll();
        archive.add(await writer.step(of, archive.position));
        if (archive.hasFullPart) await sender.sendFull();
        progressed?.(progressOf({ ...row, ...progressAt(archive.position) }));
        if (now().getTime() < until || archive.unsentBytes > MAX_CARRY_BYTES) continue;
        return await sender.noteAll();
      }
      signal?.throwIfAborted();
      await sender.sendRest();
    } finally {
      await sender.settled();
    }
    await ending.complete(row, { sizeBytes: archive.position.offset, checkpoint: checkpoints.number });
  }

  function putterOf({ storageKey, uploadId }: Export) {
    return (number: number, bytes: Buffer) => uploads.putPart(storageKey, uploadId ?? '', number, bytes);
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
          if (row.position && writer.knows(row.position)) await writeOn(row, row.position, writeOptions);
          else await beginAnew(row);
        } catch (error) {
          if (isUnusable(error)) await beginAnew((await find(exportId)) ?? row);
          if (!(error instanceof Superseded)) throw error;
        }
        row = await find(exportId);
      }
      return { status: row?.status ?? 'gone', progress: row ? progressOf(row) : '' };
    },

    giveUp: ending.giveUp,
    tidy: ending.tidy,
  };
}

/** Beyond this some file of the archive may have more than 4 GiB. */
const LARGE_BYTES = 1024 ** 3;

function isUnusable(error: unknown): boolean {
  return error instanceof StorageError && (error.failure === 'missing' || error.failure === 'mismatched');
}

function progressOf(
  row: Pick<Export, 'rowsDone' | 'rowsTotal' | 'filesDone' | 'filesTotal' | 'sizeBytes'>,
): string {
  return `${row.filesDone} of ${row.filesTotal} files, ${row.rowsDone} of ${row.rowsTotal} rows, ${row.sizeBytes} bytes`;
}
