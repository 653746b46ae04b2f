import { decodeText } from '../mime/charset.ts';

/** A part of a message without further parts. */
export interface LeafPart {
  /** `type/subtype` in lower case, without parameters. */
  contentType: string;
  /** Lower-case names, the first value of each, unfolded. */
  fields: Map<string, string>;
  /** Without transfer encoding, one character per byte, line ends as `\n`. */
  content: string;
}

const MAX_DEPTH = 10;
const MAX_PARTS = 200;

/**
 * Returns the leaves of a MIME tree, in order. Meant for reports, which are small and contain the reported message: an
 * embedded message (`message/rfc822`) is a leaf, so that its content is never mistaken for the report. A message
 * without MIME structure is one leaf. Never throws.
 */
export function parseLeafParts(raw: Buffer): LeafPart[] {
  const leaves: LeafPart[] = [];
  collectLeaves(normalizeLines(raw), 'text/plain', 0, leaves);
  return leaves;
}

/** Parses the header of a message. Skips leading empty lines, which some mail spools contain. */
export function parseHeaderFields(raw: Buffer): Map<string, string> {
  return splitHeader(normalizeLines(raw)).fields;
}

function normalizeLines(raw: Buffer): string {
  return raw
    .toString('latin1')
    .replace(/\r\n?/g, '\n')
    .replace(/^\n{1,100}(?=[^\s:]{1,100}:)/, '');
}

function collectLeaves(text: string, defaultType: string, depth: number, leaves: LeafPart[]): void {
  if (leaves.length >= MAX_PARTS) return;
  const { fields, body } = splitHeader(text);
  const contentTypeField = fields.get('content-type') ?? defaultType;
  const contentType = (/^[^\s;]+/.exec(contentTypeField)?.[0] ?? defaultType).toLowerCase();
  const parts =
    contentType.startsWith('multipart/') && depth < MAX_DEPTH ? splitMultipart(body, contentTypeField) : [];
  if (parts.length === 0) {
    leaves.push({
      contentType,
      fields,
      content: decodeTransferEncoding(body, fields.get('content-transfer-encoding')),
    });
    return;
  }
  const childType = contentType === 'multipart/digest' ? 'message/rfc822' : 'text/plain';
  for (const part of parts) collectLeaves(part, childType, depth + 1, leaves);
}

/** Splits by the declared boundary. If it is missing or wrong, splits by the first line that looks like a delimiter. */
function splitMultipart(body: string, contentTypeField: string): string[] {
  const declared = getBoundary(contentTypeField);
  const parts = declared === null ? [] : splitParts(body, declared);
  if (parts.length > 0) return parts;
  const guessed = /^--([^\s-][^\n]{0,199}|-[^\n]{10,199})\n(?:content-|\n)/im.exec(body)?.[1]?.trimEnd();
  return guessed === undefined ? [] : splitParts(body, guessed);
}

function splitHeader(text: string): { fields: Map<string, string>; body: string } {
  // A part without fields starts with an empty line.
  const end = text.startsWith('\n') ? 0 : text.indexOf('\n\n');
  const header = end === -1 ? text : text.slice(0, end);
  const body = end === -1 ? '' : text.slice(end === 0 ? 1 : end + 2);
  return { fields: parseFields(header), body };
}

/** Parses fields of a header or of a report block (RFC 5322 section 2.2), unfolded, the first of each name. */
export function parseFields(block: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of block.replace(/\n[ \t]+/g, ' ').split('\n')) {
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(0, colon)).trim().toLowerCase();
    if (name !== '' && !fields.has(name)) fields.set(name, line.slice(colon + 1).trim());
  }
  return fields;
}

function getBoundary(contentTypeField: string): string | null {
  const found = /;\s*boundary\s*=\s*(?:"([^"]{1,200})"|([^\s;"]{1,200}))/i.exec(contentTypeField);
  return found?.[1] ?? found?.[2] ?? null;
}

/** Splits at delimiter lines (RFC 2046 section 5.1.1). Without a closing delimiter, the last part ends with the text. */
function splitParts(body: string, boundary: string): string[] {
  const delimiter = `\n--${boundary}`;
  const parts: string[] = [];
  const text = `\n${body}`;
  let partStart = -1;
  for (let at = text.indexOf(delimiter); at !== -1; at = text.indexOf(delimiter, at + 1)) {
    const lineEnd = text.indexOf('\n', at + 1);
    const rest = text.slice(at + delimiter.length, lineEnd === -1 ? undefined : lineEnd);
    // A longer boundary may start with this one.
    if (!/^(?:--)?[ \t]*$/.test(rest)) continue;
    if (partStart !== -1) parts.push(text.slice(partStart, at));
    partStart = -1;
    if (rest.startsWith('--') || lineEnd === -1) return parts;
    partStart = lineEnd + 1;
    if (parts.length >= MAX_PARTS) return parts;
  }
  if (partStart !== -1) parts.push(text.slice(partStart));
  return parts;
}

function decodeTransferEncoding(body: string, encodingField: string | undefined): string {
  const encoding = encodingField?.trim().toLowerCase();
  if (encoding === 'base64') {
    return Buffer.from(body, 'base64').toString('latin1').replace(/\r\n?/g, '\n');
  }
  if (encoding !== 'quoted-printable') return body;
  return body
    .replace(/=[ \t]*\n/g, '')
    .replace(/=([0-9a-f]{2})/gi, (_match, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/\r\n?/g, '\n');
}

/** Decodes the content by its declared charset, or by its bytes if no charset is declared. */
export function decodeContent({ fields, content }: LeafPart): string {
  const charset = /;\s*charset\s*=\s*"?([^\s";]{1,40})/i.exec(fields.get('content-type') ?? '')?.[1];
  return decodeText(Buffer.from(content, 'latin1'), charset ?? '');
}
