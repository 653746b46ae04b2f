import type { Message } from '../messages/message.entity.ts';
import { textFromHtml } from '../mime/html-to-text.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import { CUT_MARK, cutToBytes, escapeHtml, fragmentOfText, safeFragment } from '../mime/sanitize-html.ts';
import { MAX_BODY_BYTES } from './outbound-content.ts';

export type Original = Pick<
  Message,
  | 'fromEmail'
  | 'fromName'
  | 'to'
  | 'cc'
  | 'subject'
  | 'textBody'
  | 'htmlBody'
  | 'createdAt'
  | 'sentAt'
  | 'receivedAt'
  | 'headers'
>;

export interface Bodies {
  textBody: string | null;
  htmlBody: string | null;
}

/** More of a mail than anybody reads below an answer. */
const MAX_QUOTE_BYTES = 1024 * 1024;
/** The lines around a quote: attribution or header block, tags, the mark of a cut. */
const FRAME_BYTES = 512 * 1024;
/** A longer text is forwarded as text alone: as HTML it may be six times as long. */
const MAX_TEXT_AS_HTML_BYTES = 512 * 1024;
const MAX_ADDRESSES_SHOWN = 100;
const MAX_SHOWN_CHARACTERS = 998;

/** The bodies of an answer: what was written, and the original quoted below, in each body that was written. */
export function replyBodies(written: Bodies, original: Original): Bodies {
  const { textBody, htmlBody } = written;
  return {
    textBody: textBody === null ? null : textBody.trimEnd() + quoteBelow(original, roomBeside(textBody)),
    htmlBody: htmlBody === null ? null : insideBody(htmlBody, htmlQuoteBelow(original, roomBeside(htmlBody))),
  };
}

/**
 * The bodies of a forward: what was written, and below it header and body of the original. An original with HTML keeps
 * it, also where only text was written.
 *
 * @param keepInlineImages the original's pictures go along.
 */
export function forwardBodies(written: Bodies, original: Original, keepInlineImages: boolean): Bodies {
  const { textBody, htmlBody } = written;
  const asHtml =
    htmlBody !== null ||
    (isWritten(original.htmlBody) && Buffer.byteLength(textBody ?? '') <= MAX_TEXT_AS_HTML_BYTES);
  const note =
    htmlBody ?? (isWritten(textBody) ? fragmentOfText(textBody, { maxBytes: MAX_BODY_BYTES }) : '');
  return {
    textBody:
      textBody === null && htmlBody !== null
        ? null
        : forwardedText(textBody ?? '', original, roomBeside(textBody ?? '')),
    htmlBody: asHtml
      ? insideBody(note, forwardedHtml(original, { maxBytes: roomBeside(note), keepInlineImages }))
      : null,
  };
}

function roomBeside(body: string): number {
  const left = MAX_BODY_BYTES - Buffer.byteLength(body) - FRAME_BYTES;
  return Math.max(0, Math.min(left, MAX_QUOTE_BYTES));
}

function quoteBelow(original: Original, maxBytes: number): string {
  const text = textOf(original);
  if (text === '' || maxBytes === 0) return '';
  return `\n\n${attribution(original)}\n${quotedLines(text, maxBytes)}\n`;
}

/** RFC 3676 section 4.5: a mark a line, and no space between two marks. */
export function quotedLines(text: string, maxBytes: number): string {
  const lines: string[] = [];
  let room = maxBytes;
  for (const line of text.replace(/\r\n?/g, '\n').trimEnd().split('\n')) {
    const quoted = line === '' || line.startsWith('>') ? `>${line}` : `> ${line}`;
    const bytes = Buffer.byteLength(quoted) + 1;
    if (bytes > room) {
      lines.push(room > 100 ? cutToBytes(quoted, room) : `> ${CUT_MARK}`);
      break;
    }
    room -= bytes;
    lines.push(quoted);
  }
  return lines.join('\n');
}

/** Classes that mail programs know a quote by, to fold it; `type=cite` is what others look for. */
function htmlQuoteBelow(original: Original, maxBytes: number): string {
  const fragment = fragmentOf(original, { maxBytes, keepInlineImages: false });
  if (fragment === '' || maxBytes === 0) return '';
  return (
    `<br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">${escapeHtml(attribution(original))}<br></div>` +
    '<blockquote type="cite" style="margin:0 0 0 0.8ex;border-left:1px solid #ccc;padding-left:1ex">' +
    `${fragment}</blockquote></div>`
  );
}

const FORWARD_LINE = '---------- Forwarded message ---------';

function forwardedText(written: string, original: Original, maxBytes: number): string {
  const above = written.trim() === '' ? '' : `${written.trimEnd()}\n\n`;
  const header = headerBlock(original).map(([name, value]) => `${name}: ${value}`);
  return `${above}${[FORWARD_LINE, ...header].join('\n')}\n\n${cutToBytes(textOf(original), maxBytes)}\n`;
}

function forwardedHtml(original: Original, options: { maxBytes: number; keepInlineImages: boolean }): string {
  const header = headerBlock(original).map(([name, value]) => `<b>${name}:</b> ${escapeHtml(value)}<br>`);
  return (
    `<br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">${FORWARD_LINE}<br>${header.join('')}</div><br>` +
    `${fragmentOf(original, options)}</div>`
  );
}

/** A mail's HTML may be a whole document: what is added belongs before its end. */
function insideBody(html: string, addition: string): string {
  const end = [...html.matchAll(/<\/body/gi)].at(-1)?.index ?? html.length;
  return html.slice(0, end) + addition + html.slice(end);
}

function textOf({ textBody, htmlBody }: Original): string {
  if (isWritten(textBody)) return textBody.replace(/\r\n?/g, '\n').trimEnd();
  return isWritten(htmlBody) ? textFromHtml(htmlBody) : '';
}

function fragmentOf(
  { textBody, htmlBody }: Original,
  options: { maxBytes: number; keepInlineImages: boolean },
): string {
  if (isWritten(htmlBody)) return safeFragment(htmlBody, options);
  return isWritten(textBody) ? fragmentOfText(textBody.trimEnd(), options) : '';
}

function isWritten(body: string | null): body is string {
  return body !== null && body.trim() !== '';
}

function attribution(original: Original): string {
  const [, weekday, date, time] =
    /^(\w+), (.+) (\d\d:\d\d):\d\d GMT$/.exec(dateOf(original).toUTCString()) ?? [];
  return `On ${weekday}, ${date} at ${time} UTC, ${shown(senderOf(original))} wrote:`;
}

function headerBlock(original: Original): [string, string][] {
  const date = dateOf(original).toUTCString().replace('GMT', '+0000');
  const block: [string, string][] = [
    ['From', shown(senderOf(original))],
    ['Date', date],
    ['Subject', oneLine(original.subject)],
    ['To', shownList(original.to)],
  ];
  if (original.cc.length > 0) block.push(['Cc', shownList(original.cc)]);
  return block;
}

/** A sender's clock may be off by so much. */
const CLOCK_SKEW_MS = 24 * 3_600_000;

/** When its writer says it was written, where that can be; else when it came or left. */
function dateOf({ headers, receivedAt, sentAt, createdAt }: Original): Date {
  const known = receivedAt ?? sentAt ?? createdAt;
  const written = new Date(receivedAt ? (headers.date ?? '') : '');
  const isLikely = written.getTime() > 0 && written.getTime() < known.getTime() + CLOCK_SKEW_MS;
  return isLikely ? written : known;
}

function senderOf({ fromEmail: email, fromName: name }: Original): MailAddress {
  return name ? { email, name } : { email };
}

function shownList(addresses: MailAddress[]): string {
  const rest = addresses.length - MAX_ADDRESSES_SHOWN;
  const list = addresses.slice(0, MAX_ADDRESSES_SHOWN).map(shown).join(', ');
  return rest > 0 ? `${list} and ${rest} more` : list;
}

function shown({ email, name }: MailAddress): string {
  const address = oneLine(email).slice(0, 254);
  return name && oneLine(name) !== '' ? `${oneLine(name).slice(0, 100)} <${address}>` : address;
}

/** A stranger's words beside our own: no line of theirs begins anew. */
function oneLine(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
    .slice(0, MAX_SHOWN_CHARACTERS)
    .toWellFormed();
}
