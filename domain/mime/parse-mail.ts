import type { Readable } from 'node:stream';
import type { AttachmentStream } from 'mailparser';
import { storableJson, storableText } from '../../platform/database/storable.ts';
import type { StoredObject } from '../../platform/storage.ts';
import { readAddressList, replaceControls } from './address-list.ts';
import { readAuthor } from './author.ts';
import { getFileName, sanitizeFileName } from './file-name.ts';
import { limitHeader } from './header-limit.ts';
import type { MailAddress } from './mail-address.ts';
import {
  createMimeReader,
  decodeHeaderLine,
  isUniqueField,
  MAX_PARSED_CHARACTERS,
  MAX_TEXT_BYTES,
  type MimeReader,
} from './mime-reader.ts';
import { limitParts } from './part-limit.ts';
import { repairStructure } from './repair-structure.ts';

/** A part of a message that is a file. */
export interface ParsedFile {
  /** Safe for saving. `attachment-<position>` if the message contains no usable name. */
  filename: string;
  contentType: string;
  contentId: string | null;
  disposition: 'attachment' | 'inline';
}

/** A file that was stored during parsing. */
export interface ParsedAttachment extends ParsedFile {
  storageKey: string;
  stored: StoredObject;
}

export interface ParsedMail<File = ParsedAttachment> {
  from: MailAddress | null;
  /** See {@link Author.isAmbiguous}. */
  isAuthorAmbiguous: boolean;
  to: MailAddress[];
  cc: MailAddress[];
  replyTo: MailAddress[];
  subject: string;
  text: string | null;
  html: string | null;
  messageId: string | null;
  inReplyTo: string | null;
  references: string[];
  /**
   * Lower-case names. Of a repeated field, the last value; of From and Subject, the first value, which mail clients
   * show.
   */
  headers: Record<string, string>;
  attachments: File[];
  /**
   * Null if the whole message was parsed. Otherwise the result contains the header and the files stored so far. It
   * contains the text if the message has too many parts, but not if the parser fails, because the parser emits the text
   * last.
   */
  parseError: string | null;
}

export interface ParseOptions {
  /** Reads a file to its end. Called for one file at a time. */
  consumeFile(file: ParsedFile, content: Readable): Promise<void>;
  /** Called with the header before anything else is parsed: if the parser fails later, only the header is available. */
  onHeader?(header: ParsedHeader): void;
}

export type ParsedHeader = Omit<ParsedMail, 'text' | 'html' | 'attachments' | 'parseError'>;

const MAX_ATTACHMENTS = 500;
/** Below the limit of the parser (1,000 nodes), which counts an embedded message as a second node. */
const MAX_PARTS = 900;
const MAX_HEADER_FIELDS = 200;
const MAX_HEADER_CHARACTERS = 2_000;
const MAX_ADDRESSES = 500;
/**
 * RFC 5322 section 2.1.1: an id cannot be folded, so the line length limits it. PostgreSQL indexes up to 2,704 octets.
 */
const MAX_MESSAGE_ID_OCTETS = 998;
/** RFC 6838 section 4.2. Storage receives the type as an HTTP header, which restricts its characters. */
const MEDIA_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/i;
/** RFC 5322 section 2.2: printable ASCII except the colon. */
const FIELD_NAME = /^[!-9;-~]{1,100}$/;

/** The result before anything is parsed, or if only the raw bytes can be stored. */
export function emptyParsedMail(parseError: string | null): ParsedMail<never> {
  return {
    from: null,
    // An author that was not read may not be the author that DMARC authenticates.
    isAuthorAmbiguous: true,
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
 * Parses a message as a stream: passes files on as they arrive, buffers bodies, does not convert HTML. A malicious
 * message may take unlimited time and memory, so this function runs in a child process (`parser/pool.ts`).
 *
 * @returns text and JSON that PostgreSQL can store.
 * @throws errors of the source and of `consumeFile`; never because of the content.
 */
export async function parseMail(raw: Readable, options: ParseOptions): Promise<ParsedMail<ParsedFile>> {
  const parsed: ParsedMail<ParsedFile> = emptyParsedMail(null);
  const parser = createMimeReader();
  let fields: Map<string, unknown> = new Map();
  parser.on('headers', (headers) => {
    fields = headers;
    readHeaders(parsed, headers);
  });
  // Emitted after `headers`.
  parser.on('headerLines', (lines) => {
    parsed.headers = toHeaderRecord(lines, fields);
    const author = readAuthor(fieldsNamed(lines, 'from'));
    parsed.isAuthorAmbiguous = author.isAmbiguous || parser.isHeaderCut;
    parsed.from = author.from;
    // The parser drops control characters from addresses, and does not support all comments and source routes.
    parsed.to = readAddresses(lines, 'to');
    parsed.cc = readAddresses(lines, 'cc');
    parsed.replyTo = readAddresses(lines, 'reply-to');
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

/** Resolves at the end of the message or when parsing fails; rejects if the source or `consumeFile` fails. */
function parseParts(
  parser: MimeReader,
  raw: Readable,
  parsed: ParsedMail<ParsedFile>,
  options: ParseOptions,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let consuming = Promise.resolve();
  let openFile: Readable | undefined;
  let files = 0;
  parser.on('data', (part) => {
    if (part.type === 'text') {
      parsed.html = typeof part.html === 'string' ? part.html : null;
      parsed.text = part.text || (parsed.html === null ? (part.text ?? null) : null);
      if (parser.isTextTruncated)
        parsed.parseError ??= `The message has more than ${MAX_TEXT_BYTES} bytes of text; only the raw message contains the rest.`;
      return;
    }
    files += 1;
    if (files > MAX_ATTACHMENTS) {
      parsed.parseError ??= `The message has more than ${MAX_ATTACHMENTS} attachments; only the raw message contains the rest.`;
      part.content.on('end', () => part.release()).resume();
      return;
    }
    openFile = part.content as Readable;
    const file = toParsedFile(part, files);
    consuming = options.consumeFile(file, openFile).then(() => {
      parsed.attachments.push(file);
      part.release();
    });
    consuming.catch(reject);
  });
  // The parser may emit several errors, and an unhandled error terminates the process.
  parser.on('error', (error: Error) => {
    parsed.parseError ??= `The message could not be parsed: ${error.message}`.slice(0, 500);
    resolve();
  });
  parser.once('end', () => void consuming.then(resolve));
  raw.once('error', reject);
  const limited = limitParts(MAX_PARTS, () => {
    parsed.parseError ??= `The message has more than ${MAX_PARTS} parts; only the raw message contains the rest.`;
    bounded.unpipe(limited);
    limited.end();
  });
  const bounded = limitHeader((problem) => {
    parsed.parseError ??= problem;
    // The rest may contain another author.
    parser.isHeaderCut = true;
  });
  const repaired = repairStructure((problem) => {
    parsed.parseError ??= problem;
  });
  raw.pipe(repaired).pipe(bounded).pipe(limited).pipe(parser);
  return promise.finally(() => {
    raw.unpipe(repaired);
    repaired.unpipe(bounded);
    bounded.unpipe(limited);
    limited.unpipe(parser);
    raw.destroy();
    // Otherwise the consumer of an incomplete part would wait for the rest.
    openFile?.destroy();
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

/** Types of parts that often have no file name, with the extension by which programs open them. */
const EXTENSIONS: Record<string, string> = { 'message/rfc822': '.eml', 'text/calendar': '.ics' };

function buildDefaultFileName(contentType: string, position: number): string {
  if (contentType === 'application/ms-tnef') return 'winmail.dat';
  return `attachment-${position}${EXTENSIONS[contentType] ?? ''}`;
}

function readHeaders(parsed: ParsedMail<ParsedFile>, headers: Map<string, unknown>): void {
  parsed.subject = replaceControls(toText(headers.get('subject'))).slice(0, MAX_HEADER_CHARACTERS);
  parsed.messageId = toMessageIds(headers.get('message-id'))[0] ?? null;
  parsed.inReplyTo = toMessageIds(headers.get('in-reply-to'))[0] ?? null;
  parsed.references = toMessageIds(headers.get('references'));
}

/** A field as the parser reads it: a lower-case name, and the whole field with one character per octet. */
interface RawField {
  key: string;
  line: string;
}

/**
 * Returns the decoded value if the parser returns a plain string, otherwise the raw value, unfolded (RFC 5322 section
 * 2.2.3).
 */
function toHeaderRecord(lines: readonly RawField[], fields: Map<string, unknown>): Record<string, string> {
  const record = lines
    .filter(({ key }) => FIELD_NAME.test(key))
    .slice(0, MAX_HEADER_FIELDS)
    .map(({ key, line }) => {
      const decoded = fields.get(key);
      const value = typeof decoded === 'string' ? decoded : toFieldValue(line);
      return [key, value.trim().slice(0, MAX_HEADER_CHARACTERS)] as const;
    });
  const shown = record.toReversed().filter(([key]) => isUniqueField(key));
  return Object.fromEntries([...record, ...shown]);
}

/** The value of a raw field, decoded as text and unfolded, with U+FFFD for control characters. */
function toFieldValue(line: string): string {
  const value = line.slice(line.indexOf(':') + 1, MAX_PARSED_CHARACTERS);
  return replaceControls(decodeHeaderLine(value).replace(/\r?\n(?=[ \t])/g, ''));
}

function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value instanceof Date) return value.toUTCString();
  if (Array.isArray(value)) return toText(value.at(-1));
  if (typeof value !== 'object' || value === null) return '';
  if ('text' in value) return toText(value.text);
  return 'value' in value ? toText(value.value) : '';
}

function readAddresses(lines: readonly RawField[], name: string): MailAddress[] {
  return fieldsNamed(lines, name)
    .flatMap((value) => readAddressList(value).mailboxes)
    .slice(0, MAX_ADDRESSES);
}

function fieldsNamed(lines: readonly RawField[], name: string): string[] {
  return lines.filter(({ key }) => key === name).map(({ line }) => toFieldValue(line));
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
