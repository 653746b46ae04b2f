import { Readable } from 'node:stream';
import MailComposer from 'nodemailer/lib/mail-composer';
import { sha256 } from '../../platform/crypto.ts';
import { htmlToText } from './html-to-text.ts';
import type { MailAddress } from './mail-address.ts';

/** A mail as it is written down: everything its bytes depend on, and nothing of its envelope (no Bcc). */
export interface MimeMessage {
  /** Without angle brackets. */
  messageId: string;
  date: Date;
  from: MailAddress;
  to: MailAddress[];
  cc: MailAddress[];
  replyTo: MailAddress[];
  subject: string;
  /** Without angle brackets; null where the mail answers nothing. */
  inReplyTo: string | null;
  /** The thread's ids, oldest first, without angle brackets. */
  references: string[];
  /** Says `Auto-Submitted: auto-generated` (RFC 3834): no person wrote this. */
  autoSubmitted: boolean;
  /** The sender's own fields; see {@link isCustomHeaderName}. */
  headers: Record<string, string>;
  text: string | null;
  html: string | null;
  attachments?: MimeAttachment[];
}

export interface MimeAttachment {
  filename: string;
  contentType: string;
  /** Without angle brackets (RFC 2392); null where the HTML does not refer to it. */
  contentId: string | null;
  disposition: 'attachment' | 'inline';
  /** Called when its turn comes, so that no more than one is open. */
  open: () => Promise<Readable>;
}

/** Fields a sender may add: experimental ones and those of list mail (RFC 2369, RFC 8058). Ours cannot be replaced. */
export function isCustomHeaderName(name: string): boolean {
  return /^(?:x-[a-z0-9-]{1,74}|list-unsubscribe(?:-post)?)$/i.test(name);
}

/**
 * Writes the mail as RFC 5322 and MIME, CRLF throughout, 7-bit. The same input gives the same bytes: a build that is
 * repeated after a crash stores what was stored before. (The exception is text derived from HTML so deep that its
 * conversion is stopped.)
 *
 * @throws Error for a custom field that is not allowed or carries a control character; the API refuses these first.
 * Errors of an attachment's stream destroy the stream that is returned.
 */
export function buildMime(message: MimeMessage): Readable {
  const composer = new MailComposer({
    from: toMailbox(message.from),
    // RFC 5322 demands no destination field, but many filters do.
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
/** RFC 5322 section 2.1.1: a line has at most 998 characters, and some relays unfold what was folded. */
const MAX_REFERENCES_CHARACTERS = 998 - 'References: '.length;

/** The chain as a field's value: when it is cut, the first id (the thread's root) and the newest ones stay. */
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
    if (!isCustomHeaderName(key)) throw new Error(`The field ${JSON.stringify(key)} may not be set`);
    if (/\p{Cc}/u.test(value)) throw new Error(`The field ${key} carries a control character`);
    return { key, value };
  });
  if (autoSubmitted) fields.unshift({ key: 'Auto-Submitted', value: 'auto-generated' });
  return fields;
}

/** The sender's own fields keep their case: RFC 5322 gives it no meaning, but some systems look for `X-MS`, not `X-Ms`. */
function preserveHeaderCase(headers: Record<string, string>): (name: string) => string {
  const written = new Map(Object.keys(headers).map((name) => [name.toLowerCase(), name]));
  return (name) => written.get(name.toLowerCase()) ?? name;
}

/** A mail has a text for those who read no HTML; where the sender gave none, it is derived. */
function buildBodies({ text, html }: MimeMessage): { text: string; html?: string } {
  if (html === null) return { text: toCrlf(text ?? '') };
  return { text: toCrlf(text ?? htmlToText(html)), html: toCrlf(html) };
}

/** Bare CR and LF would be mended on the way out (RFC 5321 section 2.3.8), and the stored bytes not be the sent ones. */
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
 * RFC 2046 sections 5.1 and 5.2.1 let no multipart and no message be encoded, and a stranger's bytes cannot go as they
 * are: a line may be too long, a bare CR or LF would be mended. As mere bytes such a file arrives as it was given.
 */
function toEncodableType(contentType: string): string {
  return /^(?:message|multipart)\//i.test(contentType) ? 'application/octet-stream' : contentType;
}

async function* readLazily(open: () => Promise<Readable>): AsyncGenerator<Buffer> {
  yield* await open();
}
