import { Transform } from 'node:stream';

export interface SubmissionDefaults {
  /** Without angle brackets; used if the message has no Message-ID. */
  messageId: string;
  /** Used if the message has no Date. */
  date: Date;
}

/** No mail client writes a longer header. */
const MAX_HEADER_BYTES = 1024 * 1024;
/** Bcc reveals recipients to each other (RFC 5322 section 3.6.3); the other fields are added by receiving servers. */
const REMOVED_FIELD = /^(?:bcc|resent-bcc|return-path|x-original-to|delivered-to)[ \t]*:/i;

/**
 * Applies the changes of a submission server (RFC 6409 section 8): removes Bcc, adds a missing Date and Message-ID, and
 * ends every line with CRLF. All other bytes are unchanged, so that the sender's signatures remain valid.
 */
export function rewriteSubmission(defaults: SubmissionDefaults): Transform {
  let header: Buffer | null = Buffer.alloc(0);
  let lastByte = 0;
  const normalized = (bytes: Buffer) => {
    const text = normalizeLineEnds(bytes, lastByte);
    lastByte = bytes.at(-1) ?? lastByte;
    return text;
  };
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (header === null) return done(null, normalized(chunk));
      header = Buffer.concat([header, chunk]);
      const end = findHeaderEnd(header);
      if (end === -1)
        return header.length > MAX_HEADER_BYTES
          ? done(new Error('The header is longer than 1 MiB.'))
          : done();
      this.push(rewriteHeader(header.subarray(0, end), defaults));
      const body = header.subarray(end);
      header = null;
      done(null, normalized(body));
    },
    flush(done) {
      // A message without a body, and possibly without the empty line before it.
      if (header === null) return done();
      done(null, Buffer.concat([rewriteHeader(header, defaults), Buffer.from('\r\n')]));
    },
  });
}

/** Returns the offset of the empty line that ends the header, or -1 if it has not arrived yet. */
function findHeaderEnd(bytes: Buffer): number {
  for (let at = 0; at !== -1 && at < bytes.length; ) {
    const first = bytes[at];
    if (first === 0x0a || (first === 0x0d && bytes[at + 1] === 0x0a)) return at;
    const newline = bytes.indexOf(0x0a, at);
    at = newline === -1 ? -1 : newline + 1;
  }
  return -1;
}

function rewriteHeader(bytes: Buffer, { messageId, date }: SubmissionDefaults): Buffer {
  const fields = bytes
    .toString('latin1')
    .split(/\r?\n(?![ \t])/)
    .filter((field) => field !== '' && !REMOVED_FIELD.test(field))
    .map((field) => field.replace(/\r?\n/g, '\r\n'));
  const has = (name: string) => fields.some((field) => new RegExp(`^${name}[ \\t]*:`, 'i').test(field));
  if (!has('Date')) fields.unshift(`Date: ${date.toUTCString().replace('GMT', '+0000')}`);
  if (!has('Message-ID')) fields.unshift(`Message-ID: <${messageId}>`);
  if (!has('MIME-Version') && has('Content-Type')) fields.push('MIME-Version: 1.0');
  return Buffer.from(fields.map((field) => `${field}\r\n`).join(''), 'latin1');
}

/** @param before the byte before these bytes; it may be the CR that precedes a leading LF. */
function normalizeLineEnds(bytes: Buffer, before: number): Buffer {
  let bareLineFeeds = 0;
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1))
    if ((at === 0 ? before : bytes[at - 1]) !== 0x0d) bareLineFeeds += 1;
  if (bareLineFeeds === 0) return bytes;
  const result = Buffer.alloc(bytes.length + bareLineFeeds);
  let length = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte === 0x0a && (at === 0 ? before : bytes[at - 1]) !== 0x0d) result[length++] = 0x0d;
    result[length++] = byte;
  }
  return result;
}
