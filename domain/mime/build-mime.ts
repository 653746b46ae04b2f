import { Readable } from 'node:stream';
import MailComposer from 'nodemailer/lib/mail-composer';
import { sha256 } from '../../platform/crypto.ts';
import { findCustomHeaderProblem } from './custom-header.ts';
import { htmlToText } from './html-to-text.ts';
import type { MailAddress } from './mail-address.ts';

/** RFC 3834 section 5: `auto-replied` for a response to another message. */
export type AutoSubmitted = 'auto-generated' | 'auto-replied';

/** All input for the bytes of a message. Excludes the envelope, and therefore Bcc. */
export interface MimeMessage {
  /** Without angle brackets. */
  messageId: string;
  date: Date;
  from: MailAddress;
  to: MailAddress[];
  cc: MailAddress[];
  replyTo: MailAddress[];
  subject: string;
  /** Without angle brackets. Null unless the message is a reply. */
  inReplyTo: string | null;
  /** Message-IDs of the thread, oldest first, without angle brackets. */
  references: string[];
  /** Value of the field Auto-Submitted; null for none. */
  autoSubmitted: AutoSubmitted | null;
  /** Custom header fields; see {@link findCustomHeaderProblem}. */
  headers: Record<string, string>;
  text: string | null;
  html: string | null;
  attachments?: MimeAttachment[];
}

export interface MimeAttachment {
  filename: string;
  contentType: string;
  /** Without angle brackets (RFC 2392). Null if the HTML does not refer to it. */
  contentId: string | null;
  disposition: 'attachment' | 'inline';
  /** Called immediately before the file is read, so only one file is open at a time. */
  open: () => Promise<Readable>;
}

/**
 * Builds a message (RFC 5322, MIME) with CRLF line ends and 7-bit content. The build is deterministic, so a retry after
 * a crash stores the same bytes. The one exception is text derived from HTML whose conversion times out.
 *
 * @throws UnsendableMessageError for a custom field that is not allowed. The API rejects these first.
 * @returns a stream that is destroyed if an attachment's stream fails.
 */
export function buildMime(message: MimeMessage): Readable {
  const composer = new MailComposer({
    from: toMailbox(message.from),
    // RFC 5322 does not require a destination field, but many spam filters do.
    to: message.to.length + message.cc.length > 0 ? message.to.map(toMailbox) : 'undisclosed-recipients:;',
    cc: message.cc.map(toMailbox),
    replyTo: message.replyTo.map(toMailbox),
    subject: message.subject,
    messageId: message.messageId,
    date: message.date,
    inReplyTo: message.inReplyTo ?? undefined,
    references: buildReferencesField(message.references),
    headers: buildCustomFields(message),
    normalizeHeaderKey: preserveHeaderCase(message.headers),
    ...buildBodies(message),
    attachments: message.attachments?.map(toAttachmentOptions),
    baseBoundary: sha256(message.messageId).toString('hex').slice(0, 24),
    newline: '\r\n',
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return composer.compile().createReadStream();
}

const MAX_REFERENCES = 20;
/** RFC 5322 section 2.1.1 limits a line to 998 characters, and some relays unfold fields. */
const MAX_REFERENCES_CHARACTERS = 998 - 'References: '.length;

/** Builds the value of References. If it is too long, keeps the first id (the root of the thread) and the newest ids. */
export function buildReferencesField(chain: string[]): string {
  const ids = [...new Set(chain)].map((id) => `<${id.replace(/[<>\s]/g, '')}>`);
  const [root, ...rest] = ids.filter((id) => id.length > 2 && id.length <= MAX_REFERENCES_CHARACTERS / 2);
  if (root === undefined) return '';
  const newest: string[] = [];
  let characters = root.length;
  for (const id of rest.reverse()) {
    characters += 1 + id.length;
    if (newest.length + 2 > MAX_REFERENCES || characters > MAX_REFERENCES_CHARACTERS) break;
    newest.unshift(id);
  }
  return [root, ...newest].join(' ');
}

function toMailbox({ email, name }: MailAddress): { address: string; name: string } {
  return { address: email, name: name ?? '' };
}

function buildCustomFields({ headers, autoSubmitted }: MimeMessage): { key: string; value: string }[] {
  const fields = Object.entries(headers).map(([key, value]) => {
    const problem = findCustomHeaderProblem(key, value);
    if (problem !== undefined) throw new UnsendableMessageError(`A custom header field ${problem}.`);
    return { key, value };
  });
  if (autoSubmitted) fields.unshift({ key: 'Auto-Submitted', value: autoSubmitted });
  return fields;
}

/**
 * Preserves the case of custom field names. They are case-insensitive in RFC 5322, but some systems match `X-MS` and
 * not `X-Ms`.
 */
function preserveHeaderCase(headers: Record<string, string>): (name: string) => string {
  const originalNames = new Map(Object.keys(headers).map((name) => [name.toLowerCase(), name]));
  return (name) => originalNames.get(name.toLowerCase()) ?? name;
}

/** Derives the text from the HTML if the sender provided none, for clients that do not display HTML. */
function buildBodies({ text, html }: MimeMessage): { text: string; html?: string } {
  if (html === null) return { text: toCrlf(text ?? '') };
  return { text: toCrlf(text ?? htmlToText(html)), html: toCrlf(html) };
}

/** Relays would fix bare CR and LF (RFC 5321 section 2.3.8), and the sent bytes would differ from the stored ones. */
function toCrlf(text: string): string {
  return text.replace(/\r\n?|\n/g, '\r\n');
}

function toAttachmentOptions({ filename, contentType, contentId, disposition, open }: MimeAttachment) {
  return {
    filename,
    contentType: toEncodableType(contentType),
    contentDisposition: disposition,
    ...(contentId ? { cid: contentId } : {}),
    content: Readable.from(readLazily(open), { objectMode: false }),
  };
}

/**
 * RFC 2046 sections 5.1 and 5.2.1 forbid base64 for multipart and message types, and arbitrary bytes cannot be sent
 * unencoded: a line may be too long, and relays fix bare CR and LF. With `application/octet-stream` the file arrives
 * intact.
 */
function toEncodableType(contentType: string): string {
  return /^(?:message|multipart)\//i.test(contentType) ? 'application/octet-stream' : contentType;
}

async function* readLazily(open: () => Promise<Readable>): AsyncGenerator<Buffer> {
  yield* await open();
}

/**
 * No message can be built from the stored data, now or later. The reason names no address and no content, because
 * operators read it in workflow histories.
 */
export class UnsendableMessageError extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'UnsendableMessageError';
  }
}
