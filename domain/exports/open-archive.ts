import type { Database } from '../../platform/database/database.ts';
import type { UploadedPart } from '../../platform/storage.ts';
import type { ArchiveStep } from './archive-appender.ts';
import { type ArchivePosition, BEGINNING } from './archive-position.ts';
import { type Export, ExportEntity } from './export.entity.ts';
import { ExportPieceEntity } from './export-piece.entity.ts';

/** Somebody else wrote the position down, or ended the export. */
export class Superseded extends Error {}

/** An archive between its last checkpoint and the next. */
export class OpenArchive {
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
export async function checkpoint(
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

export async function lastPiece(
  database: Database,
  exportId: string,
): Promise<{ piece: number; part: number }> {
  const [last] = await database.statement<{ piece: number; part: number }>(
    `select coalesce(max(number), 0)::int as piece, coalesce(max(part_number), 0)::int as part
     from export_pieces where export_id = ?`,
    [exportId],
  );
  return last ?? { piece: 0, part: 0 };
}
