import type { Database } from '../../platform/database/database.ts';
import type { UploadedPart } from '../../platform/multipart-uploads.ts';
import type { ArchiveStep } from './archive-appender.ts';
import type { ArchivePosition } from './archive-position.ts';
import { type Export, ExportEntity } from './export.entity.ts';
import { ExportSegmentEntity } from './export-segment.entity.ts';

/** Somebody else wrote the position down, or ended the export. */
export class StaleCheckpointError extends Error {}

/** How far an archive was at a moment, and what of it is in no part and not remembered yet. */
export interface ArchiveSnapshot {
  position: ArchivePosition;
  carry: Buffer;
  directory: Buffer;
  missing: string;
}

/**
 * What of an archive is in no part yet. Bytes are copied into buffers of a part's length, which are used again: new ones
 * for each part would be collected too late.
 */
export class PartBuffer {
  position: ArchivePosition;
  readonly #partBytes: number;
  #part: Buffer;
  #filled = 0;
  readonly #full: Buffer[] = [];
  #spare: Buffer | undefined;
  #directory: Buffer[] = [];
  #missing = '';
  #isNoted = true;

  constructor({
    partSizeBytes,
    position,
    partBuffer,
  }: Pick<Export, 'partSizeBytes' | 'partBuffer'> & { position: ArchivePosition }) {
    this.position = position;
    this.#partBytes = partSizeBytes;
    this.#part = Buffer.allocUnsafeSlow(partSizeBytes);
    if (partBuffer) this.#append(Buffer.from(partBuffer));
  }

  get unsentBytes(): number {
    return this.#full.length * this.#partBytes + this.#filled;
  }

  get hasFullPart(): boolean {
    return this.#full.length > 0;
  }

  /** Whether there is something that no snapshot has. */
  get hasUnsaved(): boolean {
    return !this.#isNoted;
  }

  add({ bytes, directory, missing, position }: ArchiveStep): void {
    for (const chunk of bytes) this.#append(chunk);
    if (directory.length > 0) this.#directory.push(directory);
    this.#missing += missing;
    this.position = position;
    this.#isNoted = false;
  }

  /** The parts that are full. They are the caller's until it gives them back. */
  takeFullParts(): Buffer[] {
    return this.#full.splice(0);
  }

  /** The last part. */
  takeLastPart(): Buffer {
    const rest = this.#part.subarray(0, this.#filled);
    this.#filled = 0;
    return rest;
  }

  recycle(part: Buffer): void {
    this.#spare = part;
  }

  /** For a checkpoint; what is remembered in it is forgotten here. */
  takeSnapshot(): ArchiveSnapshot {
    const { position } = this;
    const carry = Buffer.from(this.#part.subarray(0, this.#filled));
    const snapshot = { position, carry, directory: Buffer.concat(this.#directory), missing: this.#missing };
    this.#directory = [];
    this.#missing = '';
    this.#isNoted = true;
    return snapshot;
  }

  #append(chunk: Buffer): void {
    for (let start = 0; start < chunk.length; ) {
      const copied = chunk.copy(this.#part, this.#filled, start);
      start += copied;
      this.#filled += copied;
      if (this.#filled === this.#partBytes) this.#next();
    }
  }

  #next(): void {
    this.#full.push(this.#part);
    this.#part = this.#spare ?? Buffer.allocUnsafeSlow(this.#partBytes);
    this.#spare = undefined;
    this.#filled = 0;
  }
}

/** What an export's row counts, of a position. */
export function toProgress({
  rows,
  files,
  missing,
  offset,
}: ArchivePosition): Pick<Export, 'rowsDone' | 'filesDone' | 'sizeBytes'> {
  const sum = (counts: Record<string, number>) => Object.values(counts).reduce((all, each) => all + each, 0);
  return { rowsDone: sum(rows), filesDone: sum(files) + missing, sizeBytes: offset };
}

export interface Checkpoints {
  /** Of the last one that was written down. */
  readonly number: number;
  /** How many parts are there. */
  readonly parts: number;
  /**
   * From its commit on nothing before the snapshot is done again.
   *
   * @throws Superseded
   */
  save(snapshot: ArchiveSnapshot, parts: UploadedPart[], updatedAt: Date): Promise<void>;
}

/** The checkpoints of an export's row, from where it stands. */
export async function openCheckpoints(
  database: Pick<Database, 'statement' | 'systemTransaction'>,
  row: Pick<Export, 'id' | 'organizationId' | 'checkpoint'>,
): Promise<Checkpoints> {
  const last = await readLastPiece(database, row.id);
  let number = row.checkpoint;
  return {
    get number() {
      return number;
    },
    get parts() {
      return last.part;
    },
    async save({ position, carry, directory, missing }, parts, updatedAt) {
      const pieces = parts.length > 0 ? parts : [null];
      await database.systemTransaction(async ({ em }) => {
        const saved = await em.nativeUpdate(
          ExportEntity,
          { id: row.id, status: 'running', checkpoint: number },
          { checkpoint: number + 1, position, partBuffer: carry, updatedAt, ...toProgress(position) },
        );
        if (saved === 0) throw new StaleCheckpointError();
        await em.insertMany(
          ExportSegmentEntity,
          pieces.map((part, index) => ({
            exportId: row.id,
            number: last.piece + 1 + index,
            organizationId: row.organizationId,
            partNumber: part?.number ?? null,
            etag: part?.etag ?? null,
            centralDirectory: index === 0 ? directory : Buffer.alloc(0),
            missingFiles: index === 0 ? missing : '',
          })),
        );
      });
      number += 1;
      last.piece += pieces.length;
      last.part = parts.at(-1)?.number ?? last.part;
    },
  };
}

async function readLastPiece(
  database: Pick<Database, 'statement'>,
  exportId: string,
): Promise<{ piece: number; part: number }> {
  const [last] = await database.statement<{ piece: number; part: number }>(
    `select coalesce(max(number), 0)::int as piece, coalesce(max(part_number), 0)::int as part
     from export_segments where export_id = ?`,
    [exportId],
  );
  return last ?? { piece: 0, part: 0 };
}
