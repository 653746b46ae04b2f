import { Transform } from 'node:stream';

/**
 * Limits of a received header. Real headers have a few KiB and a few hundred lines; the longest contain lists of
 * recipients. Libraries that read headers take quadratic time in the number of lines and fields.
 */
export const HEADER_LIMITS = { maxBytes: 2 * 1024 * 1024, maxLines: 4_000, maxFields: 1_000 };

/**
 * Passes a message on with at most the first fields of its header that are within {@link HEADER_LIMITS}. The body is
 * unchanged.
 *
 * @param onLimit called at most once, with the limit that the header exceeds.
 * @param options.maxSpaces longer runs of white space in the header are shortened to this length.
 */
export function limitHeader(
  onLimit: (problem: string) => void,
  { maxSpaces = Number.POSITIVE_INFINITY }: { maxSpaces?: number } = {},
): Transform {
  let pending: Buffer[] = [];
  let sizeBytes = 0;
  let state: 'header' | 'skipping' | 'body' = 'header';
  /** The last bytes: the empty line may begin in one chunk and end in the next. */
  let tail = Buffer.alloc(0);
  const flushHeader = (header: Buffer) => {
    const { keptBytes, problem } = measureHeader(header);
    if (problem) onLimit(problem);
    return shortenSpaces(header.subarray(0, keptBytes), maxSpaces);
  };
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (state === 'body') return done(null, chunk);
      const searched = Buffer.concat([tail, chunk]);
      const found = findHeaderEnd(searched, sizeBytes === tail.length);
      const end = found === -1 ? -1 : found - tail.length;
      tail = searched.subarray(-3);
      if (state === 'header') {
        pending.push(chunk);
        sizeBytes += chunk.length;
        if (end === -1 && sizeBytes <= HEADER_LIMITS.maxBytes) return done();
        const bytes = Buffer.concat(pending);
        pending = [];
        this.push(flushHeader(end === -1 ? bytes : bytes.subarray(0, bytes.length - chunk.length + end)));
        state = 'skipping';
      }
      if (end === -1) return done();
      state = 'body';
      // The empty line may have begun in the previous chunk.
      done(
        null,
        Buffer.concat([
          end < 0 ? searched.subarray(found, found - end) : EMPTY,
          chunk.subarray(Math.max(0, end)),
        ]),
      );
    },
    flush(done) {
      done(null, state === 'header' ? flushHeader(Buffer.concat(pending)) : null);
    },
  });
}

/** {@link limitHeader} for a message in memory. */
export function limitHeaderBytes(message: Buffer): { message: Buffer; problem: string | null } {
  const found = findHeaderEnd(message, true);
  const end = found === -1 ? message.length : found;
  const { keptBytes, problem } = measureHeader(message.subarray(0, end));
  if (problem === null) return { message, problem };
  return { message: Buffer.concat([message.subarray(0, keptBytes), message.subarray(end)]), problem };
}

/** Finds how many bytes at the start of a header are whole fields within the limits. */
function measureHeader(header: Buffer): { keptBytes: number; problem: string | null } {
  const { maxBytes, maxLines, maxFields } = HEADER_LIMITS;
  let lines = 0;
  let fields = 0;
  let fieldStart = 0;
  for (let at = 0; at < header.length; ) {
    const isFolded = header[at] === SPACE || header[at] === TAB;
    if (!isFolded) {
      fieldStart = at;
      fields += 1;
    }
    lines += 1;
    const end = header.indexOf(LF, at);
    const next = end === -1 ? header.length : end + 1;
    if (next > maxBytes) return { keptBytes: fieldStart, problem: describe(`${maxBytes / 1_048_576} MiB`) };
    if (lines > maxLines) return { keptBytes: fieldStart, problem: describe(`${maxLines} lines`) };
    if (fields > maxFields) return { keptBytes: fieldStart, problem: describe(`${maxFields} fields`) };
    at = next;
  }
  return { keptBytes: header.length, problem: null };
}

/** Shortens runs of white space, folded lines and bare CRs included, in one pass. */
function shortenSpaces(header: Buffer, maxSpaces: number): Buffer {
  if (maxSpaces === Number.POSITIVE_INFINITY) return header;
  const kept = Buffer.allocUnsafe(header.length);
  let size = 0;
  let run = 0;
  for (let at = 0; at < header.length; at += 1) {
    run = isSpaceWithinField(header, at) ? run + 1 : 0;
    if (run <= maxSpaces) {
      kept[size] = header[at] ?? SPACE;
      size += 1;
    }
  }
  return kept.subarray(0, size);
}

function isSpaceWithinField(header: Buffer, at: number): boolean {
  const byte = header[at];
  const isFold = (next: number | undefined) => next === SPACE || next === TAB;
  if (byte === CR) return header[at + 1] !== LF || isFold(header[at + 2]);
  return byte === LF ? isFold(header[at + 1]) : isFold(byte);
}

function describe(limit: string): string {
  return `The header has more than ${limit}; only the raw message contains the rest.`;
}

/** Returns the offset of the empty line that ends a header, or -1. A bare LF also ends a line. */
function findHeaderEnd(bytes: Buffer, atStart: boolean): number {
  if (atStart && (bytes[0] === LF || (bytes[0] === CR && bytes[1] === LF))) return 0;
  const ends = [bytes.indexOf('\n\n'), bytes.indexOf('\n\r\n')].filter((at) => at !== -1);
  return ends.length === 0 ? -1 : Math.min(...ends) + 1;
}

const EMPTY = Buffer.alloc(0);
const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;
