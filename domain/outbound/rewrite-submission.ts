import { Transform } from 'node:stream';

export interface SubmissionDefaults {
  /** Without angle brackets; taken where the mail names none. */
  messageId: string;
  /** Taken where the mail has none. */
  date: Date;
}

/** A header longer than this is no mail program's. */
const MAX_HEADER_BYTES = 1024 * 1024;
/** Bcc tells recipients of one another (RFC 5322 section 3.6.3); the others are a receiving server's to write. */
const REMOVED_FIELD = /^(?:bcc|resent-bcc|return-path|x-original-to|delivered-to)[ \t]*:/i;

/**
 * What a submission server does to a mail (RFC 6409 section 8): takes Bcc out, adds Date and Message-ID where they are
 * missing, ends every line with CRLF. Everything else passes byte for byte, so that signatures of the sender hold.
 */
export function rewriteSubmission(facts: SubmissionDefaults): Transform {
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
          ? done(new Error('The header does not end within 1 MiB.'))
          : done();
      this.push(rewriteHeader(header.subarray(0, end), facts));
      const body = header.subarray(end);
      header = null;
      done(null, normalized(body));
    },
    flush(done) {
      // A mail without a body, and perhaps without the empty line before it.
      if (header === null) return done();
      done(null, Buffer.concat([rewriteHeader(header, facts), Buffer.from('\r\n')]));
    },
  });
}

/** Where the empty line begins that ends the header; -1 as long as there is none. */
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

/** @param before the byte before these: a CR there belongs to a LF here. */
function normalizeLineEnds(bytes: Buffer, before: number): Buffer {
  let bare = 0;
  for (let at = bytes.indexOf(0x0a); at !== -1; at = bytes.indexOf(0x0a, at + 1))
    if ((at === 0 ? before : bytes[at - 1]) !== 0x0d) bare += 1;
  if (bare === 0) return bytes;
  const result = Buffer.alloc(bytes.length + bare);
  let length = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] as number;
    if (byte === 0x0a && (at === 0 ? before : bytes[at - 1]) !== 0x0d) result[length++] = 0x0d;
    result[length++] = byte;
  }
  return result;
}
