import type { Message } from '../messages/message.entity.ts';
import { htmlToText } from '../mime/html-to-text.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import {
  escapeHtml,
  sanitizeHtml,
  TRUNCATION_MARK,
  textToHtml,
  truncateToBytes,
} from '../mime/sanitize-html.ts';
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
const MAX_LISTED_ADDRESSES = 100;
const MAX_LINE_CHARACTERS = 998;

/** The bodies of an answer: what was written, and the original quoted below, in each body that was written. */
export function buildReplyBodies(written: Bodies, original: Original): Bodies {
  const { textBody, htmlBody } = written;
  return {
    textBody: textBody === null ? null : textBody.trimEnd() + textQuote(original, quoteBudgetBytes(textBody)),
    htmlBody:
      htmlBody === null
        ? null
        : insertBeforeBodyEnd(htmlBody, htmlQuote(original, quoteBudgetBytes(htmlBody))),
  };
}

/**
 * The bodies of a forward: what was written, and below it header and body of the original. An original with HTML keeps
 * it, also where only text was written.
 *
 * @param keepInlineImages the original's pictures go along.
 */
export function buildForwardBodies(written: Bodies, original: Original, keepInlineImages: boolean): Bodies {
  const { textBody, htmlBody } = written;
  const asHtml =
    htmlBody !== null ||
    (hasText(original.htmlBody) && Buffer.byteLength(textBody ?? '') <= MAX_TEXT_AS_HTML_BYTES);
  const note = htmlBody ?? (hasText(textBody) ? textToHtml(textBody, { maxBytes: MAX_BODY_BYTES }) : '');
  return {
    textBody:
      textBody === null && htmlBody !== null
        ? null
        : buildForwardedText(textBody ?? '', original, quoteBudgetBytes(textBody ?? '')),
    htmlBody: asHtml
      ? insertBeforeBodyEnd(
          note,
          buildForwardedHtml(original, { maxBytes: quoteBudgetBytes(note), keepInlineImages }),
        )
      : null,
  };
}

function quoteBudgetBytes(body: string): number {
  const left = MAX_BODY_BYTES - Buffer.byteLength(body) - FRAME_BYTES;
  return Math.max(0, Math.min(left, MAX_QUOTE_BYTES));
}

function textQuote(original: Original, maxBytes: number): string {
  const text = textOf(original);
  if (text === '' || maxBytes === 0) return '';
  return `\n\n${buildAttribution(original)}\n${quoteLines(text, maxBytes)}\n`;
}

/** RFC 3676 section 4.5: a mark a line, and no space between two marks. */
export function quoteLines(text: string, maxBytes: number): string {
  const lines: string[] = [];
  let room = maxBytes;
  for (const line of text.replace(/\r\n?/g, '\n').trimEnd().split('\n')) {
    const quoted = line === '' || line.startsWith('>') ? `>${line}` : `> ${line}`;
    const bytes = Buffer.byteLength(quoted) + 1;
    if (bytes > room) {
      lines.push(room > 100 ? truncateToBytes(quoted, room) : `> ${TRUNCATION_MARK}`);
      break;
    }
    room -= bytes;
    lines.push(quoted);
  }
  return lines.join('\n');
}

/** Classes that mail programs know a quote by, to fold it; `type=cite` is what others look for. */
function htmlQuote(original: Original, maxBytes: number): string {
  const fragment = fragmentOf(original, { maxBytes, keepInlineImages: false });
  if (fragment === '' || maxBytes === 0) return '';
  return (
    `<br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">${escapeHtml(buildAttribution(original))}<br></div>` +
    '<blockquote type="cite" style="margin:0 0 0 0.8ex;border-left:1px solid #ccc;padding-left:1ex">' +
    `${fragment}</blockquote></div>`
  );
}

const FORWARD_LINE = '---------- Forwarded message ---------';

function buildForwardedText(written: string, original: Original, maxBytes: number): string {
  const above = written.trim() === '' ? '' : `${written.trimEnd()}\n\n`;
  const header = buildHeaderBlock(original).map(([name, value]) => `${name}: ${value}`);
  return `${above}${[FORWARD_LINE, ...header].join('\n')}\n\n${truncateToBytes(textOf(original), maxBytes)}\n`;
}

function buildForwardedHtml(
  original: Original,
  options: { maxBytes: number; keepInlineImages: boolean },
): string {
  const header = buildHeaderBlock(original).map(
    ([name, value]) => `<b>${name}:</b> ${escapeHtml(value)}<br>`,
  );
  return (
    `<br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">${FORWARD_LINE}<br>${header.join('')}</div><br>` +
    `${fragmentOf(original, options)}</div>`
  );
}

/** A mail's HTML may be a whole document: what is added belongs before its end. */
function insertBeforeBodyEnd(html: string, addition: string): string {
  const end = [...html.matchAll(/<\/body/gi)].at(-1)?.index ?? html.length;
  return html.slice(0, end) + addition + html.slice(end);
}

function textOf({ textBody, htmlBody }: Original): string {
  if (hasText(textBody)) return textBody.replace(/\r\n?/g, '\n').trimEnd();
  return hasText(htmlBody) ? htmlToText(htmlBody) : '';
}

function fragmentOf(
  { textBody, htmlBody }: Original,
  options: { maxBytes: number; keepInlineImages: boolean },
): string {
  if (hasText(htmlBody)) return sanitizeHtml(htmlBody, options);
  return hasText(textBody) ? textToHtml(textBody.trimEnd(), options) : '';
}

function hasText(body: string | null): body is string {
  return body !== null && body.trim() !== '';
}

function buildAttribution(original: Original): string {
  const [, weekday, date, time] =
    /^(\w+), (.+) (\d\d:\d\d):\d\d GMT$/.exec(dateOf(original).toUTCString()) ?? [];
  return `On ${weekday}, ${date} at ${time} UTC, ${formatAddress(senderOf(original))} wrote:`;
}

function buildHeaderBlock(original: Original): [string, string][] {
  const date = dateOf(original).toUTCString().replace('GMT', '+0000');
  const block: [string, string][] = [
    ['From', formatAddress(senderOf(original))],
    ['Date', date],
    ['Subject', toSingleLine(original.subject)],
    ['To', formatAddressList(original.to)],
  ];
  if (original.cc.length > 0) block.push(['Cc', formatAddressList(original.cc)]);
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

function formatAddressList(addresses: MailAddress[]): string {
  const rest = addresses.length - MAX_LISTED_ADDRESSES;
  const list = addresses.slice(0, MAX_LISTED_ADDRESSES).map(formatAddress).join(', ');
  return rest > 0 ? `${list} and ${rest} more` : list;
}

function formatAddress({ email, name }: MailAddress): string {
  const address = toSingleLine(email).slice(0, 254);
  return name && toSingleLine(name) !== '' ? `${toSingleLine(name).slice(0, 100)} <${address}>` : address;
}

/** A stranger's words beside our own: no line of theirs begins anew. */
function toSingleLine(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
    .slice(0, MAX_LINE_CHARACTERS)
    .toWellFormed();
}
