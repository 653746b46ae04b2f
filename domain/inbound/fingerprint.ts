import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';

export interface Fingerprint {
  /** SHA-256 of the mail without what its way left in it: the same mail that came twice has the same one. */
  sha256: Buffer;
  /** Somebody signed it (RFC 6376). */
  isSigned: boolean;
}

/** Fields that servers add on the way (RFC 5321 section 4.4, RFC 8601, RFC 8617) and filters leave behind. */
const TRACE_FIELD =
  /^(?:received|return-path|delivered-to|x-delivered-to|x-original-to|(?:x-)?envelope-to|(?:x-)?envelope-from|authentication-results|received-spf|arc-[a-z-]+|x-received|x-spam-[a-z-]+|x-spamd?|x-rspamd-[a-z-]+|x-virus-[a-z-]+|x-[a-z-]*trace[a-z-]*)[ \t]*:/i;
/** A longer header is hashed as it is from here on. */
const MAX_HEADER_BYTES = 1024 * 1024;

/** Reads the whole stream, and keeps no more of it than its header. */
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

/** Where the empty line after the header is; the length where there is none yet. */
function findHeaderEnd(bytes: Buffer): number {
  const ends = [bytes.indexOf('\n\r\n'), bytes.indexOf('\n\n')].filter((at) => at >= 0);
  return ends.length === 0 ? bytes.length : Math.min(...ends) + 1;
}

/** Each with its folded lines (RFC 5322 section 2.2.3). */
function splitFields(header: string): string[] {
  return header.split(/(?<=\n)(?![ \t])/);
}
