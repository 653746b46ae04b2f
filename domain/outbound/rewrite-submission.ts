import type { Transform } from 'node:stream';
import parseAddresses from 'nodemailer/lib/addressparser';
import MimeNode from 'nodemailer/lib/mime-node';
import { AppError } from '../../platform/errors.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import { isProviderCommand } from '../mime/custom-header.ts';
import { decodeEncodedWords } from '../mime/encoded-words.ts';
import {
  fieldsNamed,
  formatHeaderFields,
  type HeaderField,
  MalformedHeaderError,
  parseHeaderFields,
} from '../mime/header-fields.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import { mapMessage } from '../mime/map-message.ts';
import { decodeHeaderLine } from '../mime/mime-reader.ts';

export interface SubmissionDefaults {
  /** Without angle brackets; used if the message has no Message-ID. */
  messageId: string;
  /** Used if the message has no Date. */
  date: Date;
  /** The address that From must contain. */
  inboxEmail: string;
}

/**
 * Bcc reveals recipients to each other (RFC 5322 section 3.6.3). Sender is redundant if the author sends (section 3.6.2)
 * and could name another person. Receiving servers add the other fields.
 */
const REMOVED_FIELDS = new Set(['bcc', 'sender', 'return-path', 'x-original-to', 'delivered-to']);

/**
 * The Resent fields tell who resent a message and to whom (RFC 5322 section 3.6.6). They could name another person, and
 * Resent-Bcc reveals recipients.
 */
function isRemoved({ name }: HeaderField): boolean {
  const lowerCase = name.toLowerCase();
  return REMOVED_FIELDS.has(lowerCase) || lowerCase.startsWith('resent-');
}

/**
 * Applies the changes of a submission server (RFC 6409 section 8): rewrites From, removes Bcc, Sender and the
 * Resent fields, adds a missing Date and Message-ID, and ends every line with CRLF. All other bytes are unchanged, so that a signed body remains valid.
 *
 * @throws AppError `validation_error` or `permission_denied` for a header that {@link checkSubmission} rejects.
 */
export function rewriteSubmission(defaults: SubmissionDefaults): Transform {
  let lastByte = 0;
  return mapMessage({
    mapHeader: (header) => rewriteHeader(header, defaults),
    mapBody(chunk) {
      const normalized = normalizeLineEnds(chunk, lastByte);
      lastByte = chunk.at(-1) ?? lastByte;
      return normalized;
    },
    endBody: () => Buffer.from(lastByte === CR ? '\n' : ''),
  });
}

/**
 * Creates a stream that passes a submitted message on unchanged and fails if the header must not be sent.
 *
 * @throws AppError `validation_error` for a malformed header, `permission_denied` for a foreign author.
 */
export function checkSubmission(inboxEmail: string): Transform {
  return mapMessage({
    mapHeader(header) {
      const fields = parseSubmittedHeader(header);
      requireOwnAuthor(fields, inboxEmail);
      const command = fields.find(({ name }) => isProviderCommand(name));
      if (command) throw malformed(`The field ${command.name} is a command to a mail service.`);
      return header;
    },
    mapBody: (chunk) => chunk,
  });
}

function parseSubmittedHeader(header: Buffer): HeaderField[] {
  try {
    return parseHeaderFields(header);
  } catch (error) {
    if (!(error instanceof MalformedHeaderError)) throw error;
    throw malformed(error.message);
  }
}

function malformed(detail: string): AppError {
  return new AppError('validation_error', { detail, fix: 'Send a well-formed header (RFC 5322).' });
}

function rewriteHeader(bytes: Buffer, { messageId, date, inboxEmail }: SubmissionDefaults): Buffer {
  const submitted = parseSubmittedHeader(bytes);
  const author = requireOwnAuthor(submitted, inboxEmail);
  const fields = submitted
    .filter((field) => !isRemoved(field))
    .map((field) => (field.name.toLowerCase() === 'from' ? formatAuthor(author) : field));
  const has = (name: string) => fieldsNamed(fields, name).length > 0;
  if (!has('Date')) fields.unshift({ name: 'Date', value: ` ${date.toUTCString().replace('GMT', '+0000')}` });
  if (!has('Message-ID')) fields.unshift({ name: 'Message-ID', value: ` <${messageId}>` });
  if (!has('MIME-Version') && has('Content-Type')) fields.push({ name: 'MIME-Version', value: ' 1.0' });
  return formatHeaderFields(fields);
}

/**
 * Finds the author of a submitted message: exactly one From field with exactly one mailbox, which is the inbox's own,
 * with or without a plus tag (RFC 6409 section 6.1).
 *
 * @throws AppError `permission_denied`.
 */
function requireOwnAuthor(fields: readonly HeaderField[], inboxEmail: string): MailAddress {
  const [from, ...others] = fieldsNamed(fields, 'From');
  if (!from || others.length > 0)
    throw foreignAuthor(inboxEmail, 'The message must have exactly one From field.');
  const unfolded = decodeHeaderLine(from.value).replaceAll('\r\n', '').trim();
  const [mailbox, ...further] = parseAddresses(unfolded);
  if (!mailbox || further.length > 0 || !('address' in mailbox) || mailbox.address === undefined)
    throw foreignAuthor(inboxEmail, 'From must contain exactly one address.');
  if (baseAddress(mailbox.address) !== inboxEmail)
    throw foreignAuthor(inboxEmail, `From must be ${inboxEmail}.`);
  const name = decodeEncodedWords(mailbox.name);
  return name === '' ? { email: mailbox.address } : { email: mailbox.address, name };
}

function foreignAuthor(inboxEmail: string, detail: string): AppError {
  return new AppError('permission_denied', {
    detail,
    fix: `Set the sender address of the account to ${inboxEmail}.`,
  });
}

/** Formats the author like our own messages: a reader cannot find another address in the submitted spelling. */
function formatAuthor({ email, name }: MailAddress): HeaderField {
  const header = new MimeNode().setHeader('From', [{ name: name ?? '', address: email }]).buildHeaders();
  const [from] = fieldsNamed(parseHeaderFields(Buffer.from(`${header}\r\n`, 'utf8')), 'From');
  if (!from) throw new Error('The From field was not written');
  return from;
}

/**
 * Ends every line with CRLF (RFC 5321 section 2.3.8). Some servers treat a bare CR or LF as a line end. Such a server
 * could see an end of data within the body, and a second message after it.
 *
 * @param before the byte that precedes `bytes`.
 */
function normalizeLineEnds(bytes: Buffer, before: number): Buffer {
  const bare = countBareLineEnds(bytes, before);
  if (bare === 0) return bytes;
  const result = Buffer.alloc(bytes.length + bare);
  let length = 0;
  let previous = before;
  for (const byte of bytes) {
    if (previous === CR && byte !== LF) result[length++] = LF;
    if (byte === LF && previous !== CR) result[length++] = CR;
    result[length++] = byte;
    previous = byte;
  }
  return result;
}

/** A CR at the end counts when the next chunk, or {@link rewriteSubmission} at the end, shows that it is bare. */
function countBareLineEnds(bytes: Buffer, before: number): number {
  let count = before === CR && bytes.length > 0 && bytes[0] !== LF ? 1 : 0;
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1))
    if ((at === 0 ? before : bytes[at - 1]) !== CR) count += 1;
  for (let at = bytes.indexOf(CR); at !== -1; at = bytes.indexOf(CR, at + 1))
    if (at + 1 < bytes.length && bytes[at + 1] !== LF) count += 1;
  return count;
}

const CR = 0x0d;
const LF = 0x0a;
