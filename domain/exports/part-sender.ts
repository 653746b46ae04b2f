import type { UploadedPart } from '../../platform/multipart-uploads.ts';
import type { ArchiveSnapshot, Checkpoints, PartBuffer } from './part-buffer.ts';

/** Puts parts while the archive goes on, one at a time and in order, and writes down how far it was then. */
export interface PartSender {
  /** Begins to put the parts that are full, once those before them are there. @throws what became of those. */
  sendFullParts(): Promise<void>;
  /** Puts the last part, and waits for all of them. */
  sendLastPart(): Promise<void>;
  /** Waits for all parts; then everything so far is written down. */
  saveCheckpoint(): Promise<void>;
  /** Waits until nothing is under way any more, whatever became of it. */
  settled(): Promise<void>;
}

export interface PartSenderOptions {
  buffer: PartBuffer;
  checkpoints: Checkpoints;
  put: (number: number, bytes: Buffer) => Promise<UploadedPart>;
  now: () => Date;
}

export function createPartSender({ buffer: archive, checkpoints, put, now }: PartSenderOptions): PartSender {
  let inFlight: Promise<void> = Promise.resolve();

  async function send(parts: Buffer[], snapshot: ArchiveSnapshot): Promise<void> {
    const sent: UploadedPart[] = [];
    for (const [index, bytes] of parts.entries()) sent.push(await put(checkpoints.parts + 1 + index, bytes));
    await checkpoints.save(snapshot, sent, now());
    for (const bytes of parts) archive.recycle(bytes);
  }

  return {
    async sendFullParts() {
      await inFlight;
      inFlight = send(archive.takeFullParts(), archive.takeSnapshot());
      // Whoever waits for it next learns of its failure.
      inFlight.catch(() => {});
    },

    async sendLastPart() {
      await inFlight;
      if (archive.unsentBytes === 0) return;
      const parts = [...archive.takeFullParts(), archive.takeLastPart()].filter(({ length }) => length > 0);
      await send(parts, archive.takeSnapshot());
    },

    async saveCheckpoint() {
      await inFlight;
      if (archive.hasUnsaved) await checkpoints.save(archive.takeSnapshot(), [], now());
    },

    settled: () => inFlight.catch(() => {}),
  };
}
