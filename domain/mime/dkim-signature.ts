import { createHash, createSign, type KeyObject } from 'node:crypto';
import type { Readable } from 'node:stream';

/**
 * The DKIM key of one domain (RFC 6376). The signers of nodemailer and mailauth do not oversign fields (section 8.15),
 * so anyone could add a second Subject or From to a signed message. This signer oversigns.
 */
export interface DkimSigningKey {
  /** `d=`: the domain of the From address, for DMARC alignment. */
  domain: string;
  /** `s=` */
  selector: string;
  /** RSA, 2048 bits or more. */
  privateKey: KeyObject;
  /** Fields that are not signed, because the provider replaces them. Lower case. */
  excludedFields: ReadonlySet<string>;
}

/** Fields to sign, in this order, if present. Custom `X-*` fields are not signed, because relays may change them. */
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
 * Listed once more than they occur, so that adding another field of the name breaks the signature. Some programs would
 * display the added field (RFC 6376 section 8.15).
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

/** Headers written by the service are far shorter. */
const MAX_HEADER_BYTES = 1024 * 1024;

/**
 * Creates the `DKIM-Signature` field of a message with CRLF line ends: rsa-sha256, relaxed/relaxed, the whole body (no
 * `l=`). Reads the message once and buffers only its header. The field ends with CRLF.
 *
 * @param signedAt `t=`. The same message, key and time produce the same field.
 */
export async function createDkimSignature(
  message: Readable,
  key: DkimSigningKey,
  signedAt: Date,
): Promise<string> {
  const body = createBodyHash();
  let header: Buffer | null = null;
  let start: Buffer = Buffer.alloc(0);
  for await (const chunk of message) {
    const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk);
    if (header) {
      body.update(bytes);
      continue;
    }
    start = Buffer.concat([start, bytes]);
    const end = start.indexOf('\r\n\r\n');
    if (end === -1 && start.length > MAX_HEADER_BYTES)
      throw new Error('The header of the message does not end');
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
  // The DKIM-Signature field is signed last, with an empty `b=` and no line end (section 3.7).
  signer.update(canonicalizeField(unsigned), 'latin1');
  const signature = signer.sign(key.privateKey, 'base64').match(/.{1,72}/g) ?? [];
  return `${unsigned}${signature.join('\r\n ')}\r\n`;
}

/** Section 5.4.2: fields with the same name are signed from the last to the first. */
function selectFields(header: string, unsigned: ReadonlySet<string>): { names: string[]; fields: string[] } {
  const allFields = header.split(/\r\n(?![ \t])/).filter((field) => field !== '');
  const byName = Map.groupBy(allFields, (field) => field.slice(0, field.indexOf(':')).trim().toLowerCase());
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

/** Section 3.4.2: lower-case name, unfolded, runs of white space reduced to one space, none around the value. */
function canonicalizeField(field: string): string {
  const at = field.indexOf(':');
  const value = field
    .slice(at + 1)
    .replace(/\r\n/g, '')
    .replace(/[ \t]+/g, ' ')
    .replace(/^ | $/g, '');
  return `${field.slice(0, at).trim().toLowerCase()}:${value}`;
}

/** Folds to 78 characters per line if the tags allow it. `h=` folds between names; the last tag starts a line. */
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

/** Section 3.4.4: removes white space at line ends and trailing empty lines, and reduces runs to one space. */
function createBodyHash(): { update(chunk: Buffer): void; digest(): string } {
  const hash = createHash('sha256');
  /** The start of an incomplete line. */
  let rest = '';
  /** Pending empty lines, which are hashed only if more content follows. */
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
