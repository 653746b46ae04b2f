import type { UploadedPart } from '../../platform/multipart-uploads.ts';
import type { Checkpoints } from './export-checkpoints.ts';
import type { ArchiveSnapshot, PartBuffer } from './part-buffer.ts';

/** Uploads parts in the background, one at a time and in order, and saves a checkpoint after each. */
export interface PartSender {
  /** Starts uploading the full parts once the previous ones are uploaded. @throws the error of the previous upload. */
  sendFullParts(): Promise<void>;
  /** Uploads the remaining parts and waits for them. */
  sendLastPart(): Promise<void>;
  /** Waits for pending uploads, then saves everything so far. */
  saveCheckpoint(): Promise<void>;
  /** Waits until no upload is pending; does not throw. */
  settled(): Promise<void>;
}

export interface PartSenderOptions {
  buffer: PartBuffer;
  checkpoints: Checkpoints;
  upload: (number: number, bytes: Buffer) => Promise<UploadedPart>;
  now: () => Date;
}

export function createPartSender({ buffer, checkpoints, upload, now }: PartSenderOptions): PartSender {
  let inFlight: Promise<void> = Promise.resolve();

  async function send(parts: Buffer[], snapshot: ArchiveSnapshot): Promise<void> {
    const sent: UploadedPart[] = [];
    for (const [index, bytes] of parts.entries())
      sent.push(await upload(checkpoints.parts + 1 + index, bytes));
    await checkpoints.save(snapshot, sent, now());
    for (const bytes of parts) buffer.recycle(bytes);
  }

  return {
    async sendFullParts() {
      await inFlight;
      inFlight = send(buffer.takeFullParts(), buffer.takeSnapshot());
      // The next call awaits it and gets its error.
      inFlight.catch(() => {});
    },

    async sendLastPart() {
      await inFlight;
      if (buffer.unsentBytes === 0) return;
      const parts = [...buffer.takeFullParts(), buffer.takeLastPart()].filter(({ length }) => length > 0);
      await send(parts, buffer.takeSnapshot());
    },

    async saveCheckpoint() {
      await inFlight;
      if (buffer.hasUnsaved) await checkpoints.save(buffer.takeSnapshot(), [], now());
    },

    settled: () => inFlight.catch(() => {}),
  };
}
