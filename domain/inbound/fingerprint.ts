import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';

export interface Fingerprint {
  /** SHA-256 of the message without trace fields, so that a message received twice has the same fingerprint. */
  sha256: Buffer;
  /** The message has a DKIM signature (RFC 6376). */
  isSigned: boolean;
}

/** Fields that servers (RFC 5321 section 4.4, RFC 8601, RFC 8617) and filters add in transit. */
const TRACE_FIELD =
  /^(?:received|return-path|delivered-to|x-delivered-to|x-original-to|(?:x-)?envelope-to|(?:x-)?envelope-from|authentication-results|received-spf|arc-[a-z-]+|x-received|x-spam-[a-z-]+|x-spamd?|x-rspamd-[a-z-]+|x-virus-[a-z-]+|x-[a-z-]*trace[a-z-]*)[ \t]*:/i;
/** A longer header is hashed with its trace fields. */
const MAX_HEADER_BYTES = 1024 * 1024;

/** Reads the whole stream and buffers only the header. */
export async function computeFingerprint(raw: Readable): Promise<Fingerprint> {
  const hash = createHash('sha256');
  let header: Buffer | null = Buffer.alloc(0);
  let isSigned = false;
  const hashHeader = (bytes: Buffer) => {
    const end = findHeaderEnd(bytes);
    const fields = splitFields(bytes.toString('latin1', 0, end));
    isSigned = fields.some((field) => /^dkim-signature[ \t]*:/i.test(field));
    for (const field of fields) if (!TRACE_FIELD.test(field)) hash.update(field, 'latin1');
    hash.update(bytes.subarray(end));
  };
  for await (const chunk of raw as AsyncIterable<Buffer>) {
    if (header === null) {
      hash.update(chunk);
      continue;
    }
    header = Buffer.concat([header, chunk]);
    if (findHeaderEnd(header) === header.length && header.length < MAX_HEADER_BYTES) continue;
    hashHeader(header);
    header = null;
  }
  if (header !== null) hashHeader(header);
  return { sha256: hash.digest(), isSigned };
}

/** Returns the position of the empty line after the header, or the length if there is none yet. */
function findHeaderEnd(bytes: Buffer): number {
  const ends = [bytes.indexOf('\n\r\n'), bytes.indexOf('\n\n')].filter((at) => at >= 0);
  return ends.length === 0 ? bytes.length : Math.min(...ends) + 1;
}

/** Keeps folded lines together (RFC 5322 section 2.2.3). */
function splitFields(header: string): string[] {
  return header.split(/(?<=\n)(?![ \t])/);
}
