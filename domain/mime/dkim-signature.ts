import { createHash, createSign, type KeyObject } from 'node:crypto';
import type { Readable } from 'node:stream';

/** Signs for one domain (RFC 6376). */
export interface DkimSigningKey {
  /** `d=`: that of the From address, so that DMARC finds them aligned. */
  domain: string;
  /** `s=` */
  selector: string;
  /** RSA, 2048 bits or more. */
  privateKey: KeyObject;
  /** Fields of these names are left out, because the provider replaces them. Lower case. */
  excludedFields: ReadonlySet<string>;
}

/** What is signed, in this order, as far as it is there. The sender's own `X-*` fields are left to relays to touch. */
const SIGNED_FIELDS = [
  'from',
  'sender',
  'reply-to',
  'subject',
  'date',
  'message-id',
  'to',
  'cc',
  'in-reply-to',
  'references',
  'mime-version',
  'content-type',
  'content-transfer-encoding',
  'auto-submitted',
  'list-unsubscribe',
  'list-unsubscribe-post',
];
/**
 * Named once more than they are there: the signature breaks when somebody adds a second one, which some programs show
 * in place of the first (RFC 6376 section 8.15).
 */
const OVERSIGNED_FIELDS = new Set([
  'from',
  'sender',
  'reply-to',
  'subject',
  'date',
  'to',
  'cc',
  'content-type',
]);

/** Longest header this reads before it gives up; what the service writes is far shorter. */
const MAX_HEADER_BYTES = 1024 * 1024;

/**
 * The `DKIM-Signature` field over a mail with CRLF line ends, its own line end included: rsa-sha256, relaxed/relaxed,
 * the whole body (no `l=`). Reads the mail once, holding no more of it than its header.
 *
 * @param signedAt `t=`; the same mail, key and time give the same field.
 */
export async function createDkimSignature(
  mail: Readable,
  key: DkimSigningKey,
  signedAt: Date,
): Promise<string> {
  const body = createBodyHash();
  let header: Buffer | null = null;
  let start: Buffer = Buffer.alloc(0);
  for await (const chunk of mail) {
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk);
    if (header) {
      body.update(bytes);
      continue;
    }
    start = Buffer.concat([start, bytes]);
    const end = start.indexOf('\r\n\r\n');
    if (end === -1 && start.length > MAX_HEADER_BYTES) throw new Error('The header of the mail has no end');
    if (end === -1) continue;
    header = start.subarray(0, end + 2);
    body.update(start.subarray(end + 4));
  }
  return signHeader((header ?? start).toString('latin1'), body.digest(), key, signedAt);
}

function signHeader(header: string, bodyHash: string, key: DkimSigningKey, signedAt: Date): string {
  const { names, fields } = selectFields(header, key.excludedFields);
  const seconds = Math.floor(signedAt.getTime() / 1000);
  const unsigned = foldTags([
    'v=1',
    'a=rsa-sha256',
    'c=relaxed/relaxed',
    `d=${key.domain}`,
    `s=${key.selector}`,
    `t=${seconds}`,
    `h=${names.join(':')}`,
    `bh=${bodyHash}`,
    'b=',
  ]);
  const signer = createSign('RSA-SHA256');
  for (const field of fields) signer.update(`${canonicalizeField(field)}\r\n`, 'latin1');
  // The field itself comes last, with an empty `b=` and no line end (section 3.7).
  signer.update(canonicalizeField(unsigned), 'latin1');
  const signature = signer.sign(key.privateKey, 'base64').match(/.{1,72}/g) ?? [];
  return `${unsigned}${signature.join('\r\n ')}\r\n`;
}

/** Fields of one name are taken from the last upwards (section 5.4.2). */
function selectFields(header: string, unsigned: ReadonlySet<string>): { names: string[]; fields: string[] } {
  const written = header.split(/\r\n(?![ \t])/).filter((field) => field !== '');
  const byName = Map.groupBy(written, (field) => field.slice(0, field.indexOf(':')).trim().toLowerCase());
  const names: string[] = [];
  const fields: string[] = [];
  for (const name of SIGNED_FIELDS) {
    if (unsigned.has(name)) continue;
    const present = (byName.get(name) ?? []).toReversed();
    fields.push(...present);
    const times = present.length + (OVERSIGNED_FIELDS.has(name) ? 1 : 0);
    for (let time = 0; time < times; time += 1) names.push(name);
  }
  return { names, fields };
}

/** Section 3.4.2: name in lower case, unfolded, white space runs as one space, none around the value. */
function canonicalizeField(field: string): string {
  const at = field.indexOf(':');
  const value = field
    .slice(at + 1)
    .replace(/\r\n/g, '')
    .replace(/[ \t]+/g, ' ')
    .replace(/^ | $/g, '');
  return `${field.slice(0, at).trim().toLowerCase()}:${value}`;
}

/** Lines of at most 78 characters where the tags allow; `h=` folds between its names, the last tag has its own line. */
function foldTags(tags: string[]): string {
  let line = 'DKIM-Signature:';
  const lines: string[] = [];
  const add = (text: string, space: string) => {
    if (line.length + space.length + text.length > 76) {
      lines.push(line);
      line = ` ${text}`;
    } else line += space + text;
  };
  for (const [at, tag] of tags.entries()) {
    if (at === tags.length - 1) return [...lines, line, ` ${tag}`].join('\r\n');
    const [first = '', ...rest] = tag.split(/(?<=:)/);
    add(rest.length === 0 ? `${first};` : first, ' ');
    for (const [index, name] of rest.entries()) add(index === rest.length - 1 ? `${name};` : name, '');
  }
  return line;
}

/** Section 3.4.4: white space at line ends and empty lines at the end go, runs within a line become one space. */
function createBodyHash(): { update(chunk: Buffer): void; digest(): string } {
  const hash = createHash('sha256');
  /** The line that has not ended yet. */
  let rest = '';
  /** Empty lines that are the body's only if something follows. */
  let emptyLines = 0;
  const relax = (line: string): string => {
    const relaxed = line.replace(/[ \t]+/g, ' ').replace(/ $/, '');
    if (relaxed === '') {
      emptyLines += 1;
      return '';
    }
    const before = '\r\n'.repeat(emptyLines);
    emptyLines = 0;
    return `${before}${relaxed}\r\n`;
  };
  return {
    update(chunk) {
      const lines = (rest + chunk.toString('latin1')).split('\r\n');
      rest = lines.pop() ?? '';
      hash.update(lines.map(relax).join(''), 'latin1');
    },
    digest() {
      if (rest !== '') hash.update(relax(rest), 'latin1');
      return hash.digest('base64');
    },
  };
}
