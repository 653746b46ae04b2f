import type { Database } from '../../platform/database/database.ts';
import { type Storage, StorageError, type UploadedPart } from '../../platform/storage.ts';
import type { WrittenSoFar } from '../../workflows/exports/export-organization.contract.ts';
import { DiscardedObjectEntity } from '../attachments/discarded-object.entity.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { BEGINNING } from './archive-position.ts';
import { measureOrganization, partSizeFor } from './archive-size.ts';
import { type ArchiveWriterOptions, createArchiveWriter } from './archive-writer.ts';
import { type Export, ExportEntity } from './export.entity.ts';
import { createExportEnding, type ExportEnding } from './export-ending.ts';
import { ExportPieceEntity } from './export-piece.entity.ts';
import { checkpoint, lastPiece, OpenArchive, Superseded } from './open-archive.ts';

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
/** More than this is not written into a row between two parts. */
const MAX_CARRY_BYTES = 16 * 1024 * 1024;
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
        ...{ storageKey: row.storageKey, organizationId: row.organizationId, deleting: false },
        dueAt: new Date(startedAt.getTime() + UNFINISHED_STAY_MS),
      });
      return em.nativeUpdate(
        ExportEntity,
        { id: row.id, status: 'queued', checkpoint: row.checkpoint },
        {
          ...{ status: 'running', uploadId, startedAt, updatedAt: startedAt, checkpoint: row.checkpoint + 1 },
          partSizeBytes: partSizeFor(measured.bytes, minPartBytes),
          position: { ...BEGINNING, large: measured.bytes > LARGE_BYTES },
          rowsTotal: measured.rows,
          filesTotal: measured.files,
        },
      );
    });
    if (begun === 0) await uploads.abort(row.storageKey, uploadId);
  }

  /** Storage no longer has what was put, or another than it said: nothing of it can be used. */
  async function beginAnew(row: Export): Promise<void> {
    await database.systemTransaction(async ({ em }) => {
      const reset = await em.nativeUpdate(
        ExportEntity,
        { id: row.id, status: 'running', checkpoint: row.checkpoint },
        {
          ...{ status: 'queued', uploadId: null, position: null, carry: null, updatedAt: now() },
          ...{ checkpoint: row.checkpoint + 1, rowsDone: 0, filesDone: 0, sizeBytes: 0 },
        },
      );
      if (reset > 0) await em.nativeDelete(ExportPieceEntity, { exportId: row.id });
    });
    if (row.uploadId) await uploads.abort(row.storageKey, row.uploadId);
  }

  async function writeOn(row: Export, { until, signal, progressed }: WriteOptions): Promise<void> {
    const archive = new OpenArchive(row, await lastPiece(database, row.id));
    const { id, organizationId, requestedBy } = row;
    const of = { id, organizationId, requestedBy, startedAt: row.startedAt ?? row.createdAt };
    const save = (parts: UploadedPart[]) => checkpoint(database, archive, parts, now());
    while (!writer.isComplete(archive.position)) {
      signal?.throwIfAborted();
      if (writer.readsBack(archive.position) && archive.remembers) await save([]);
      archive.add(await writer.step(of, archive.position));
      const parts = await putFullParts(archive, row);
      if (parts.length > 0) await save(parts);
      progressed?.(progressOf({ ...row, ...archive.progress }));
      if (now().getTime() < until || archive.unsentBytes > MAX_CARRY_BYTES) continue;
      if (parts.length === 0) await save([]);
      return;
    }
    signal?.throwIfAborted();
    if (archive.unsentBytes > 0) await save([await putPart(archive, row, archive.unsentBytes)]);
    await ending.complete(row, archive);
  }

  async function putFullParts(archive: OpenArchive, row: Export): Promise<UploadedPart[]> {
    const parts: UploadedPart[] = [];
    while (archive.unsentBytes >= row.partSizeBytes)
      parts.push(await putPart(archive, row, row.partSizeBytes));
    return parts;
  }

  async function putPart(archive: OpenArchive, row: Export, bytes: number): Promise<UploadedPart> {
    const part = await uploads.putPart(
      row.storageKey,
      row.uploadId ?? '',
      archive.parts + 1,
      archive.take(bytes),
    );
    archive.parts += 1;
    return part;
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
          await writeOn(row, writeOptions);
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
