import { Readable } from 'node:stream';
import type { ReturnPaths, ReturnPathTarget } from '../../platform/return-path.ts';
import type { FeedbackReport } from './feedback-report.ts';

/**
 * Names the recipient of each copy, signed: providers that tell of a complaint often hide the recipient and the envelope
 * sender, and leave the header of the reported mail as it was.
 */
const TOKEN_FIELD = 'X-Report-Token';

interface RawCopy {
  openRaw: () => Promise<Readable>;
  sizeBytes: number;
}

/**
 * The copy for one recipient: the stored mail with a field of its own before it, which no signature of the mail covers.
 *
 * @param returnPath the recipient's signed return path.
 */
export function withRecipientToken({ openRaw, sizeBytes }: RawCopy, returnPath: string): RawCopy {
  const field = Buffer.from(`${TOKEN_FIELD}: ${returnPath}\r\n`);
  return {
    sizeBytes: sizeBytes + field.length,
    openRaw: async () => Readable.from(prependField(field, await openRaw()), { objectMode: false }),
  };
}

async function* prependField(field: Buffer, raw: Readable): AsyncGenerator<Buffer> {
  yield field;
  yield* raw;
}

/** Which of our mails a report is about, by a token of ours alone; null where it carries none. */
export function findReportTarget(
  { reportedFields, originalMailFrom }: Pick<FeedbackReport, 'reportedFields' | 'originalMailFrom'>,
  returnPaths: Pick<ReturnPaths, 'findIn'>,
): ReturnPathTarget | null {
  const likely = [
    reportedFields.get(TOKEN_FIELD.toLowerCase()),
    originalMailFrom,
    ...reportedFields.values(),
  ];
  for (const text of likely) {
    const target = text ? returnPaths.findIn(text) : null;
    if (target) return target;
  }
  return null;
}
