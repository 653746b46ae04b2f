import type { ArchiveStep } from './archive-appender.ts';
import type { ArchivePosition } from './archive-position.ts';
import type { Export } from './export.entity.ts';

/** Position of an archive, and what has to be saved with it. */
export interface ArchiveSnapshot {
  position: ArchivePosition;
  partBuffer: Buffer;
  centralDirectory: Buffer;
  missingFiles: string;
}

/**
 * Collects the bytes of an archive into parts. The part-sized buffers are reused, since the garbage collector would
 * free new ones too late.
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
  #isSaved = true;

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

  /** Whether anything was added since the last snapshot. */
  get hasUnsaved(): boolean {
    return !this.#isSaved;
  }

  add({ bytes, centralDirectory, missingFiles, position }: ArchiveStep): void {
    for (const chunk of bytes) this.#append(chunk);
    if (centralDirectory.length > 0) this.#directory.push(centralDirectory);
    this.#missing += missingFiles;
    this.position = position;
    this.#isSaved = false;
  }

  /** Returns the full parts. The caller owns them until it recycles them. */
  takeFullParts(): Buffer[] {
    return this.#full.splice(0);
  }

  /** Returns the last, incomplete part. */
  takeLastPart(): Buffer {
    const part = this.#part.subarray(0, this.#filled);
    this.#filled = 0;
    return part;
  }

  /** Offers a buffer for reuse. */
  recycle(part: Buffer): void {
    this.#spare = part;
  }

  /** Returns the state to save and clears the collected directory records and missing files. */
  takeSnapshot(): ArchiveSnapshot {
    const { position } = this;
    const snapshot = {
      position,
      partBuffer: Buffer.from(this.#part.subarray(0, this.#filled)),
      centralDirectory: Buffer.concat(this.#directory),
      missingFiles: this.#missing,
    };
    this.#directory = [];
    this.#missing = '';
    this.#isSaved = true;
    return snapshot;
  }

  #append(chunk: Buffer): void {
    for (let start = 0; start < chunk.length; ) {
      const copied = chunk.copy(this.#part, this.#filled, start);
      start += copied;
      this.#filled += copied;
      if (this.#filled === this.#partBytes) this.#startPart();
    }
  }

  #startPart(): void {
    this.#full.push(this.#part);
    this.#part = this.#spare ?? Buffer.allocUnsafeSlow(this.#partBytes);
    this.#spare = undefined;
    this.#filled = 0;
  }
}
