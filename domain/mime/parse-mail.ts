import type { Readable } from 'node:stream';
import type { AddressObject, AttachmentStream } from 'mailparser';
import { storableJson, storableText } from '../../platform/database/storable.ts';
import type { StoredObject } from '../../platform/storage.ts';
import { getFileName, sanitizeFileName } from './file-name.ts';
import type { MailAddress } from './mail-address.ts';
import { createMimeReader, decodeHeaderLine, MAX_TEXT_BYTES, type MimeReader } from './mime-reader.ts';
import { limitParts } from './part-limit.ts';

/** One part of a mail that is a file. */
export interface ParsedFile {
  /** Safe to save under; `attachment-<position>` where the mail gives none that is. */
  filename: string;
  contentType: string;
  contentId: string | null;
  disposition: 'attachment' | 'inline';
}

/** The same, stored while it was read. */
export interface ParsedAttachment extends ParsedFile {
  storageKey: string;
  stored: StoredObject;
}

export interface ParsedMail<File = ParsedAttachment> {
  from: MailAddress | null;
  to: MailAddress[];
  cc: MailAddress[];
  replyTo: MailAddress[];
  subject: string;
  text: string | null;
  html: string | null;
  messageId: string | null;
  inReplyTo: string | null;
  references: string[];
  /** Names in lower case; the last value of a repeated field. */
  headers: Record<string, string>;
  attachments: File[];
  /**
   * Empty where the whole mail could be read. Else the header and every file that was stored until then are kept; so is
   * the text of a mail of too many parts, but not of one the parser fails on: it tells the text at the very end.
   */
  parseError: string | null;
}

export interface ParseOptions {
  /** Reads a file to its end; called for one at a time. */
  consumeFile(file: ParsedFile, content: Readable): Promise<void>;
  /** Hears what the header tells before anything else is read: it is all that is left of a mail its reader fails on. */
  onHeader?(header: ParsedHeader): void;
}

export type ParsedHeader = Omit<ParsedMail, 'text' | 'html' | 'attachments' | 'parseError'>;

const MAX_ATTACHMENTS = 500;
/** Below the 1,000 nodes at which the parser gives up: a mail within a mail is a node more than its part. */
const MAX_PARTS = 900;
const MAX_HEADER_FIELDS = 200;
const MAX_HEADER_CHARACTERS = 2_000;
const MAX_ADDRESS_CHARACTERS = 1_024;
/** RFC 5322 section 2.1.1: an id cannot be folded, so it is never longer than a line; PostgreSQL indexes 2,704 octets. */
const MAX_MESSAGE_ID_OCTETS = 998;
/** RFC 6838 section 4.2. Storage is told the type in an HTTP header, where not every character may stand. */
const MEDIA_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/i;
/** RFC 5322 section 2.2: printable ASCII but the colon. */
const FIELD_NAME = /^[!-9;-~]{1,100}$/;

/** What is known of a mail before a byte of it was read, or where nothing of it can be kept but its raw bytes. */
export function emptyParsedMail(parseError: string | null): ParsedMail<never> {
  return {
    from: null,
    to: [],
    cc: [],
    replyTo: [],
    subject: '',
    text: null,
    html: null,
    messageId: null,
    inReplyTo: null,
    references: [],
    headers: {},
    attachments: [],
    parseError,
  };
}

/**
 * Reads a mail as a stream: files are handed on as they come, bodies are kept, HTML is not converted. Never throws for
 * what is in the mail; errors of its source and of `takeFile` are thrown. May take for ever, and any memory: see
 * `parser-pool.ts`.
 *
 * @returns text and JSON as PostgreSQL takes them.
 */
export async function parseMail(raw: Readable, options: ParseOptions): Promise<ParsedMail<ParsedFile>> {
  const parsed: ParsedMail<ParsedFile> = emptyParsedMail(null);
  const parser = createMimeReader();
  let fields: Map<string, unknown> = new Map();
  parser.on('headers', (headers) => {
    fields = headers;
    readHeaders(parsed, headers);
  });
  // Comes after the one above.
  parser.on('headerLines', (lines) => {
    parsed.headers = toHeaderRecord(lines, fields);
    const { text, html, attachments, parseError, ...header } = parsed;
    options.onHeader?.(storableJson(header));
  });
  await parseParts(parser, raw, parsed, options);
  const { text, html, attachments, ...header } = parsed;
  return {
    ...storableJson(header),
    text: text === null ? null : storableText(text),
    html: html === null ? null : storableText(html),
    attachments,
  };
}

/** Ends when the mail is read or cannot be read; rejects where its source or a taker of files fails. */
function parseParts(
  parser: MimeReader,
  raw: Readable,
  parsed: ParsedMail<ParsedFile>,
  options: ParseOptions,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let taking = Promise.resolve();
  let open: Readable | undefined;
  let files = 0;
  parser.on('data', (part) => {
    if (part.type === 'text') {
      parsed.html = typeof part.html === 'string' ? part.html : null;
      parsed.text = part.text || (parsed.html === null ? (part.text ?? null) : null);
      if (parser.isTextCut)
        parsed.parseError ??= `The mail has more than ${MAX_TEXT_BYTES} bytes of text; the rest is in the raw message alone.`;
      return;
    }
    files += 1;
    if (files > MAX_ATTACHMENTS) {
      parsed.parseError ??= `The mail has more than ${MAX_ATTACHMENTS} attachments; the rest is in the raw message alone.`;
      part.content.on('end', () => part.release()).resume();
      return;
    }
    open = part.content as Readable;
    const file = toParsedFile(part, files);
    taking = options.consumeFile(file, open).then(() => {
      parsed.attachments.push(file);
      part.release();
    });
    taking.catch(reject);
  });
  // More than one may come, and one that nobody hears ends the process.
  parser.on('error', (error: Error) => {
    parsed.parseError ??= `The mail could not be read: ${error.message}`.slice(0, 500);
    resolve();
  });
  parser.once('end', () => void taking.then(resolve));
  raw.once('error', reject);
  const limited = limitParts(MAX_PARTS, () => {
    parsed.parseError ??= `The mail has more than ${MAX_PARTS} parts; the rest is in the raw message alone.`;
    raw.unpipe(limited);
    limited.end();
  });
  raw.pipe(limited).pipe(parser);
  return promise.finally(() => {
    raw.unpipe(limited);
    limited.unpipe(parser);
    raw.destroy();
    // A part cut short: who takes it must not wait for bytes that never come.
    open?.destroy();
  });
}

function toParsedFile(part: AttachmentStream, position: number): ParsedFile {
  const contentType = toMediaType(part.contentType);
  return {
    filename: sanitizeFileName(getFileName(part.headers)) ?? buildDefaultFileName(contentType, position),
    contentType,
    contentId: part.cid === undefined ? null : storableText(part.cid, 998),
    disposition: part.contentDisposition === 'inline' ? 'inline' : 'attachment',
  };
}

/** Kinds that come without a name, and are opened by their extension. */
const EXTENSIONS: Record<string, string> = { 'message/rfc822': '.eml', 'text/calendar': '.ics' };

function buildDefaultFileName(contentType: string, position: number): string {
  if (contentType === 'application/ms-tnef') return 'winmail.dat';
  return `attachment-${position}${EXTENSIONS[contentType] ?? ''}`;
}

function readHeaders(parsed: ParsedMail<ParsedFile>, headers: Map<string, unknown>): void {
  parsed.from = toAddresses(headers.get('from'))[0] ?? null;
  parsed.to = toAddresses(headers.get('to'));
  parsed.cc = toAddresses(headers.get('cc'));
  parsed.replyTo = toAddresses(headers.get('reply-to'));
  parsed.subject = toText(headers.get('subject')).slice(0, MAX_HEADER_CHARACTERS);
  parsed.messageId = toMessageIds(headers.get('message-id'))[0] ?? null;
  parsed.inReplyTo = toMessageIds(headers.get('in-reply-to'))[0] ?? null;
  parsed.references = toMessageIds(headers.get('references'));
}

/** Decoded where the parser has a plain value for a field, else as it stood, unfolded (RFC 5322 section 2.2.3). */
function toHeaderRecord(
  lines: readonly { key: string; line: string }[],
  fields: Map<string, unknown>,
): Record<string, string> {
  const record = lines
    .filter(({ key }) => FIELD_NAME.test(key))
    .slice(0, MAX_HEADER_FIELDS)
    .map(({ key, line }) => {
      const decoded = fields.get(key);
      const value =
        typeof decoded === 'string'
          ? decoded
          : decodeHeaderLine(line.slice(line.indexOf(':') + 1)).replace(/\r?\n(?=[ \t])/g, '');
      return [key, value.trim().slice(0, MAX_HEADER_CHARACTERS)] as const;
    });
  return Object.fromEntries(record);
}

function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value instanceof Date) return value.toUTCString();
  if (Array.isArray(value)) return toText(value.at(-1));
  if (typeof value !== 'object' || value === null) return '';
  if ('text' in value) return toText(value.text);
  return 'value' in value ? toText(value.value) : '';
}

function toAddresses(value: unknown): MailAddress[] {
  const objects = (Array.isArray(value) ? value : [value]) as (AddressObject | undefined)[];
  return objects
    .flatMap((object) => object?.value ?? [])
    .flatMap((entry) => entry.group ?? [entry])
    .filter(({ address = '' }) => address !== '' && address.length <= MAX_ADDRESS_CHARACTERS)
    .slice(0, 500)
    .map(({ address, name }) => ({
      email: address ?? '',
      ...(name ? { name: name.slice(0, MAX_ADDRESS_CHARACTERS) } : {}),
    }));
}

function toMediaType(contentType: unknown): string {
  return typeof contentType === 'string' && MEDIA_TYPE.test(contentType)
    ? contentType
    : 'application/octet-stream';
}

/** Message-IDs without angle brackets (RFC 5322 section 3.6.4), at most 200. */
function toMessageIds(value: unknown): string[] {
  const text = Array.isArray(value) ? value.map(toText).join(' ') : toText(value);
  return [...text.slice(0, 100_000).matchAll(/<([^<>\s\p{Cc}]{1,998})>/gu)]
    .map(([, id = '']) => id)
    .filter((id) => Buffer.byteLength(id) <= MAX_MESSAGE_ID_OCTETS)
    .slice(0, 200);
}
