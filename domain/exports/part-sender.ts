import type { UploadedPart } from '../../platform/part-uploads.ts';
import type { Checkpoints, OpenArchive, Snapshot } from './open-archive.ts';

/** Puts parts while the archive goes on, one at a time and in order, and writes down how far it was then. */
export interface PartSender {
  /** Begins to put the parts that are full, once those before them are there. @throws what became of those. */
  sendFull(): Promise<void>;
  /** Puts the last part, and waits for all of them. */
  sendRest(): Promise<void>;
  /** Waits for all parts; then everything so far is written down. */
  noteAll(): Promise<void>;
  /** Waits until nothing is under way any more, whatever became of it. */
  settled(): Promise<void>;
}

export interface PartSenderOptions {
  archive: OpenArchive;
  checkpoints: Checkpoints;
  put: (number: number, bytes: Buffer) => Promise<UploadedPart>;
  now: () => Date;
}

export function createPartSender({ archive, checkpoints, put, now }: PartSenderOptions): PartSender {
  let underWay: Promise<void> = Promise.resolve();

  async function send(parts: Buffer[], snapshot: Snapshot): Promise<void> {
    const sent: UploadedPart[] = [];
    for (const [index, bytes] of parts.entries()) sent.push(await put(checkpoints.parts + 1 + index, bytes));
    await checkpoints.save(snapshot, sent, now());
    for (const bytes of parts) archive.giveBack(bytes);
  }

  return {
    async sendFull() {
      await underWay;
      underWay = send(archive.takeFull(), archive.snapshot());
      // Whoever waits for it next learns of its failure.
      underWay.catch(() => {});
    },

    async sendRest() {
      await underWay;
      if (archive.unsentBytes === 0) return;
      const parts = [...archive.takeFull(), archive.takeRest()].filter(({ length }) => length > 0);
      await send(parts, archive.snapshot());
    },

    async noteAll() {
      await underWay;
      if (archive.hasNews) await checkpoints.save(archive.snapshot(), [], now());
    },

    settled: () => underWay.catch(() => {}),
  };
}
