import { Readable } from 'node:stream';
import type { ReturnPaths, ReturnPathTarget } from '../../platform/return-path.ts';
import type { FeedbackReport } from './feedback-report.ts';

/**
 * Contains a signed token that identifies the recipient of each copy. Complaint reports often redact the recipient and
 * the envelope sender, but include the header of the reported message.
 */
const TOKEN_FIELD = 'X-Report-Token';

interface RawCopy {
  openRaw: () => Promise<Readable>;
  sizeBytes: number;
}

/**
 * Prepends the token field for one recipient to the stored message. The message's DKIM signatures do not cover it.
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

/** Finds the message that a report is about, by a signed token. Returns null if there is none. */
export function findReportTarget(
  { reportedFields, originalMailFrom }: Pick<FeedbackReport, 'reportedFields' | 'originalMailFrom'>,
  returnPaths: Pick<ReturnPaths, 'findIn'>,
): ReturnPathTarget | null {
  const candidates = [
    reportedFields.get(TOKEN_FIELD.toLowerCase()),
    originalMailFrom,
    ...reportedFields.values(),
  ];
  for (const text of candidates) {
    const target = text ? returnPaths.findIn(text) : null;
    if (target) return target;
  }
  return null;
}
