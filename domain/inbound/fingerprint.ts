import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';

export interface Fingerprint {
  /** SHA-256 of the message without trace fields, so that a message received twice has the same fingerprint. */
  sha256: Buffer;
  /** The message has a DKIM signature (RFC 6376). */
  isSigned: boolean;
}

/** Fields that servers (RFC 5321 section 4.4, RFC 8601, RFC 8617) and filters add in transit. Matched with a whole name. */
const TRACE_NAME =
  /^(?:received|return-path|delivered-to|x-delivered-to|x-original-to|(?:x-)?envelope-to|(?:x-)?envelope-from|authentication-results|received-spf|arc-[a-z-]+|x-received|x-spam-[a-z-]+|x-spamd?|x-rspamd-[a-z-]+|x-virus-[a-z-]+|x-[a-z-]*trace[a-z-]*)[ \t]*$/i;
/** Names of trace fields are far shorter. A longer one is not searched, because the search takes quadratic time. */
const MAX_NAME_CHARACTERS = 100;
/** A longer header is hashed with its trace fields. */
const MAX_HEADER_BYTES = 1024 * 1024;

/** Reads the whole stream and buffers only the header. */
export async function computeFingerprint(raw: Readable): Promise<Fingerprint> {
  const hash = createHash('sha256');
  const header: Buffer[] = [];
  let headerBytes = 0;
  let inHeader = true;
  let isSigned = false;
  /** The last bytes: the empty line may begin in one chunk and end in the next. */
  let tail = Buffer.alloc(0);
  const hashHeader = () => {
    const bytes = Buffer.concat(header);
    const end = findHeaderEnd(bytes);
    const fields = splitFields(bytes.toString('latin1', 0, end));
    const names = fields.map(getFieldName);
    isSigned = names.some((name) => /^dkim-signature[ \t]*$/i.test(name));
    for (const [at, field] of fields.entries())
      if (!TRACE_NAME.test(names[at] ?? '')) hash.update(field, 'latin1');
    hash.update(bytes.subarray(end));
    inHeader = false;
  };
  for await (const chunk of raw as AsyncIterable<Buffer>) {
    if (!inHeader) {
      hash.update(chunk);
      continue;
    }
    const searched = Buffer.concat([tail, chunk]);
    header.push(chunk);
    headerBytes += chunk.length;
    tail = searched.subarray(-3);
    if (findHeaderEnd(searched) === searched.length && headerBytes < MAX_HEADER_BYTES) continue;
    hashHeader();
  }
  if (inHeader) hashHeader();
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

/** The text before the colon; an empty string if it is too long or there is no colon. */
function getFieldName(field: string): string {
  const start = field.slice(0, MAX_NAME_CHARACTERS + 1);
  return start.slice(0, Math.max(0, start.indexOf(':')));
}
