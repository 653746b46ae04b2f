import { addChunk, closeEntry, completeEntry, openEntry, type ZipRecord } from '../../platform/zip.ts';
import type { ArchivePosition } from './archive-position.ts';

/** What a step appends to the archive, and the resulting position. */
export interface ArchiveStep {
  bytes: Buffer[];
  /** Records for the central directory. */
  centralDirectory: Buffer;
  /** JSON lines for files that storage no longer has. */
  missingFiles: string;
  position: ArchivePosition;
}

/** Collects the output of one step. Does not modify the position it was created from. */
export class ArchiveAppender {
  readonly position: ArchivePosition;
  readonly #bytes: Buffer[] = [];
  readonly #directory: Buffer[] = [];
  #missing = '';

  constructor(position: ArchivePosition) {
    this.position = {
      ...position,
      rows: { ...position.rows },
      files: { ...position.files },
    };
  }

  append(bytes: Buffer[]): void {
    for (const chunk of bytes) {
      this.#bytes.push(chunk);
      this.position.offset += chunk.length;
    }
  }

  async addFile(name: string, modifiedAt: number, data: Buffer): Promise<void> {
    this.#record(await completeEntry({ name, modifiedAt, offset: this.position.offset }, data));
  }

  /** Starts a file written in chunks, unless one is open. */
  startFile(name: string, modifiedAt: number): void {
    if (this.position.entry) return;
    const { offset, zip64 } = this.position;
    const { bytes, entry } = openEntry({ name, modifiedAt, offset, zip64 });
    this.append([bytes]);
    this.position.entry = entry;
  }

  async addToFile(data: Buffer): Promise<void> {
    if (!this.position.entry) throw new Error('No file is open');
    const { bytes, entry } = await addChunk(this.position.entry, data);
    this.append(bytes);
    this.position.entry = entry;
  }

  closeFile(): void {
    if (!this.position.entry) throw new Error('No file is open');
    this.#record(closeEntry(this.position.entry));
    this.position.entry = null;
  }

  count(kind: 'rows' | 'files', name: string, amount: number): void {
    const counts = this.position[kind];
    counts[name] = (counts[name] ?? 0) + amount;
  }

  /** Records a file that storage has lost wholly or in part. */
  recordMissing(file: string, reason: 'gone' | 'cut short', sizeBytes: number): void {
    this.#missing += `${JSON.stringify({ file, reason, size_bytes: sizeBytes })}\n`;
    this.position.missingFiles += 1;
  }

  nextSource(): void {
    this.position.source += 1;
    this.position.after = null;
    this.position.lastFile = null;
  }

  nextStage(): void {
    this.nextSource();
    this.position.stage += 1;
    this.position.source = 0;
    this.position.segment = 0;
  }

  toStep(): ArchiveStep {
    return {
      bytes: this.#bytes,
      centralDirectory: Buffer.concat(this.#directory),
      missingFiles: this.#missing,
      position: this.position,
    };
  }

  #record({ bytes, directoryRecord }: ZipRecord): void {
    this.append(bytes);
    this.#directory.push(directoryRecord);
    this.position.entries += 1;
  }
}
