import { LockMode } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { type Storage, StorageError, type UploadedPart } from '../../platform/storage.ts';
import type { WrittenSoFar } from '../../workflows/exports/export-organization.contract.ts';
import { DiscardedObjectEntity } from '../attachments/discarded-object.entity.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { ArchiveStep } from './archive-appender.ts';
import { type ArchivePosition, BEGINNING } from './archive-position.ts';
import { measureOrganization, partSizeFor } from './archive-size.ts';
import { type ArchiveWriterOptions, createArchiveWriter } from './archive-writer.ts';
import { type Export, ExportEntity } from './export.entity.ts';
import { ExportPieceEntity } from './export-piece.entity.ts';

export interface WriteOptions {
  /** Milliseconds since 1970. After this the position is written down, and the call returns. */
  until: number;
  /** Aborted: the call throws its reason. */
  signal?: AbortSignal;
  progressed?: (progress: string) => void;
}

export interface ExportRunner {
  /**
   * Writes on at the archive, for a while or to its end. What is in a part that was put stays; after a crash the next
   * call, wherever it is, goes on behind it.
   *
   * @throws StorageError `unavailable`.
   */
  write(exportId: string, options: WriteOptions): Promise<WrittenSoFar>;
  /** Ends an export that is not ready, and removes what there is of it. Returns its status. */
  giveUp(exportId: string, status: 'failed' | 'canceled', detail: string): Promise<string>;
  /**
   * What is left when nothing went its way: archives past their time, parts of exports whose run was terminated.
   * Returns how many exports it changed.
   */
  tidy(): Promise<number>;
}

export interface ExportRunnerOptions extends ArchiveWriterOptions {
  database: Database;
  storage: Pick<Storage, 'getPiece' | 'sizeOf' | 'partUploads'>;
  notifications: NotificationService;
  /** Smallest part; S3 takes 5 MiB at least. */
  minPartBytes?: number;
  now?: () => Date;
}

export const MIN_PART_BYTES = 5 * 1024 * 1024;
/** How long an archive is offered, and its bytes stay after that: the last link given out lives a day. */
export const OFFERED_FOR_MS = 24 * 3_600_000;
const BYTES_STAY_MS = 25 * 3_600_000;
/** An archive nobody finished within this has no row that refers to it. */
const UNFINISHED_STAY_MS = 7 * 24 * 3_600_000;
/** More than this is not written into a row between two parts. */
const MAX_CARRY_BYTES = 16 * 1024 * 1024;
const CONTENT_TYPE = 'application/zip';

/** Somebody else wrote the position down, or ended the export. */
class Superseded extends Error {}

export function createExportRunner(options: ExportRunnerOptions): ExportRunner {
  const { database, storage, notifications, minPartBytes = MIN_PART_BYTES } = options;
  const now = options.now ?? (() => new Date());
  const writer = createArchiveWriter(options);
  const uploads = storage.partUploads;

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
    await complete(row, archive);
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

  /** The worker may have died after storage completed it: then it is there. */
  async function complete(row: Export, archive: OpenArchive): Promise<void> {
    const sizeBytes = archive.position.offset;
    if ((await storage.sizeOf(row.storageKey)) !== sizeBytes)
      await uploads.complete(row.storageKey, row.uploadId ?? '', await partsOf(database, row.id));
    await database.systemTransaction(async (transaction) => {
      const { em } = transaction;
      const completedAt = now();
      const expiresAt = new Date(completedAt.getTime() + OFFERED_FOR_MS);
      const ready = await em.nativeUpdate(
        ExportEntity,
        { id: row.id, status: 'running', checkpoint: archive.checkpoint },
        {
          ...{ status: 'ready', sizeBytes, completedAt, expiresAt, updatedAt: completedAt },
          ...NOTHING_OPEN,
        },
      );
      const dueAt = ready > 0 ? new Date(expiresAt.getTime() + BYTES_STAY_MS) : completedAt;
      await discard(transaction, row, dueAt);
      await em.nativeDelete(ExportPieceEntity, { exportId: row.id });
      if (ready > 0) await tellOwners(transaction, { ...row, sizeBytes, expiresAt });
    });
  }

  async function tellOwners(
    transaction: Transaction,
    row: Pick<Export, 'id' | 'organizationId' | 'requestedBy' | 'sizeBytes'> & { expiresAt: Date },
  ): Promise<void> {
    const [key] = await transaction.em.execute<{ name: string }[]>(
      'select name from api_keys where id = ? and org_id = ?',
      [row.requestedBy, row.organizationId],
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
        expiresAt: row.expiresAt.toISOString(),
      },
      dedupeKey: `export-ready/${row.id}`,
    });
  }

  /** Removes parts and what was remembered of them. An archive that was completed at that very time goes as well. */
  async function cleanUp(
    row: Pick<Export, 'id' | 'organizationId' | 'storageKey' | 'uploadId'>,
  ): Promise<void> {
    if (row.uploadId) await uploads.abort(row.storageKey, row.uploadId);
    await database.systemTransaction(async (transaction) => {
      const { em } = transaction;
      await em.nativeDelete(ExportPieceEntity, { exportId: row.id });
      await em.nativeUpdate(ExportEntity, { id: row.id, uploadId: row.uploadId }, NOTHING_OPEN);
      await discard(transaction, row, now());
    });
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

    async giveUp(exportId, status, detail) {
      const row = await database.systemTransaction(async ({ em }) => {
        const locked = await em.findOne(
          ExportEntity,
          { id: exportId },
          { lockMode: LockMode.PESSIMISTIC_WRITE },
        );
        if (locked && (locked.status === 'queued' || locked.status === 'running')) {
          const completedAt = now();
          Object.assign(locked, { status, statusDetail: detail.slice(0, MAX_DETAIL), completedAt });
        }
        return locked;
      });
      if (row && row.status !== 'ready' && row.uploadId) await cleanUp(row);
      return row?.status ?? 'gone';
    },

    async tidy() {
      const expired = await database.statement<{ id: string }>(
        `update exports set status = 'expired', updated_at = ? where status = 'ready' and expires_at <= ? returning id`,
        [now(), now()],
      );
      const left = await database.statement<Parameters<typeof cleanUp>[0]>(
        `select id, org_id as "organizationId", storage_key as "storageKey", upload_id as "uploadId" from exports
         where upload_id is not null and status in ('failed', 'canceled', 'expired') and updated_at < ?
         order by updated_at limit 20`,
        [new Date(now().getTime() - CLEANED_UP_AFTER_MS)],
      );
      for (const row of left) await cleanUp(row);
      return expired.length + left.length;
    },
  };
}

const NOTHING_OPEN = { uploadId: null, position: null, carry: null };
const MAX_DETAIL = 1_000;
/** Whoever writes has ended by then, and its own run has cleaned up. */
const CLEANED_UP_AFTER_MS = 5 * 60_000;
/** Beyond this some file of the archive may have more than 4 GiB. */
const LARGE_BYTES = 1024 ** 3;

function isUnusable(error: unknown): boolean {
  return error instanceof StorageError && (error.failure === 'missing' || error.failure === 'mismatched');
}

/** An archive between its last checkpoint and the next. */
class OpenArchive {
  position: ArchivePosition;
  parts: number;
  piece: number;
  checkpoint: number;
  readonly row: Export;
  #unsent: Buffer[];
  #directory: Buffer[] = [];
  #missing = '';
  unsentBytes: number;

  constructor(row: Export, last: { piece: number; part: number }) {
    const carry = Buffer.from(row.carry ?? Buffer.alloc(0));
    this.row = row;
    this.position = row.position ?? BEGINNING;
    this.parts = last.part;
    this.piece = last.piece;
    this.checkpoint = row.checkpoint;
    this.#unsent = [carry];
    this.unsentBytes = carry.length;
  }

  /** Whether something waits to be written down for the end of the archive. */
  get remembers(): boolean {
    return this.#directory.length > 0 || this.#missing !== '';
  }

  get progress(): Pick<Export, 'rowsDone' | 'filesDone' | 'sizeBytes'> {
    const { rows, files, missing, offset } = this.position;
    const sum = (counts: Record<string, number>) =>
      Object.values(counts).reduce((all, each) => all + each, 0);
    return { rowsDone: sum(rows), filesDone: sum(files) + missing, sizeBytes: offset };
  }

  add({ bytes, directory, missing, position }: ArchiveStep): void {
    this.#unsent.push(bytes);
    this.unsentBytes += bytes.length;
    if (directory.length > 0) this.#directory.push(directory);
    this.#missing += missing;
    this.position = position;
  }

  /** The first bytes that are in no part. */
  take(length: number): Buffer {
    const all = Buffer.concat(this.#unsent, this.unsentBytes);
    this.#unsent = [all.subarray(length)];
    this.unsentBytes -= length;
    return all.subarray(0, length);
  }

  carry(): Buffer {
    return Buffer.concat(this.#unsent, this.unsentBytes);
  }

  /** What is to be remembered; it is forgotten here. */
  remembered(): { directory: Buffer; missing: string } {
    const remembered = { directory: Buffer.concat(this.#directory), missing: this.#missing };
    this.#directory = [];
    this.#missing = '';
    return remembered;
  }
}

/** From this commit on nothing before it is done again. */
async function checkpoint(
  database: Database,
  archive: OpenArchive,
  parts: UploadedPart[],
  updatedAt: Date,
): Promise<void> {
  const { row, position } = archive;
  const { directory, missing } = archive.remembered();
  const pieces = parts.length > 0 ? parts : [null];
  await database.systemTransaction(async ({ em }) => {
    const saved = await em.nativeUpdate(
      ExportEntity,
      { id: row.id, status: 'running', checkpoint: archive.checkpoint },
      {
        ...{ checkpoint: archive.checkpoint + 1, position, carry: archive.carry(), updatedAt },
        ...archive.progress,
      },
    );
    if (saved === 0) throw new Superseded();
    await em.insertMany(
      ExportPieceEntity,
      pieces.map((part, index) => ({
        exportId: row.id,
        number: archive.piece + 1 + index,
        organizationId: row.organizationId,
        partNumber: part?.number ?? null,
        etag: part?.etag ?? null,
        directory: index === 0 ? directory : Buffer.alloc(0),
        missing: index === 0 ? missing : '',
      })),
    );
  });
  archive.checkpoint += 1;
  archive.piece += pieces.length;
}

async function lastPiece(database: Database, exportId: string): Promise<{ piece: number; part: number }> {
  const [last] = await database.statement<{ piece: number; part: number }>(
    `select coalesce(max(number), 0)::int as piece, coalesce(max(part_number), 0)::int as part
     from export_pieces where export_id = ?`,
    [exportId],
  );
  return last ?? { piece: 0, part: 0 };
}

function partsOf(database: Database, exportId: string): Promise<UploadedPart[]> {
  return database.statement<UploadedPart>(
    `select part_number as number, etag from export_pieces
     where export_id = ? and part_number is not null order by part_number`,
    [exportId],
  );
}

async function discard(
  { em }: Transaction,
  { storageKey, organizationId }: Pick<Export, 'storageKey' | 'organizationId'>,
  dueAt: Date,
): Promise<void> {
  await em.upsert(DiscardedObjectEntity, { storageKey, organizationId, dueAt, deleting: false });
}

function progressOf(
  row: Pick<Export, 'rowsDone' | 'rowsTotal' | 'filesDone' | 'filesTotal' | 'sizeBytes'>,
): string {
  return `${row.filesDone} of ${row.filesTotal} files, ${row.rowsDone} of ${row.rowsTotal} rows, ${row.sizeBytes} bytes`;
}
