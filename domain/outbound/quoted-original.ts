import type { Message } from '../messages/message.entity.ts';
import type { HtmlConversions } from '../mime/converter/pool.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import { escapeHtml, TRUNCATION_MARK, textToHtml, truncateToBytes } from '../mime/sanitize-html.ts';
import { isStub, mayBeStub } from '../mime/stub-text.ts';
import { stripInvisible } from '../mime/visible/invisible-characters.ts';
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

/** Longer quotes are truncated. */
const MAX_QUOTE_BYTES = 1024 * 1024;
/** Space for the lines around a quote: attribution or header block, tags and the truncation mark. */
const QUOTE_OVERHEAD_BYTES = 512 * 1024;
/** Longer text is forwarded as plain text only, because the same text as HTML may be six times as long. */
const MAX_TEXT_AS_HTML_BYTES = 512 * 1024;
const MAX_LISTED_ADDRESSES = 100;
const MAX_LINE_CHARACTERS = 998;

/** Converts the HTML of originals, which may be large and hostile. */
type Converter = Pick<HtmlConversions, 'sanitize' | 'toText'>;

/** Builds the bodies of a reply: each given body with the original quoted below. */
export async function buildReplyBodies(
  bodies: Bodies,
  original: Original,
  converter: Converter,
): Promise<Bodies> {
  const { textBody, htmlBody } = bodies;
  const text = async (own: string) =>
    own.trimEnd() +
    buildTextQuote(original, await getOriginalText(original, converter), quoteBudgetBytes(own));
  const html = async (own: string) =>
    insertBeforeBodyEnd(own, await buildHtmlQuote(original, quoteBudgetBytes(own), converter));
  return {
    textBody: textBody === null ? null : await text(textBody),
    htmlBody: htmlBody === null ? null : await html(htmlBody),
  };
}

export interface ForwardOptions {
  /** Whether the original's inline images are also forwarded. */
  keepInlineImages: boolean;
}

/**
 * Builds the bodies of a forward: the given note with the header block and body of the original below. An HTML original
 * is forwarded as HTML, even if the note is plain text.
 */
export async function buildForwardBodies(
  bodies: Bodies,
  original: Original,
  { keepInlineImages, converter }: ForwardOptions & { converter: Converter },
): Promise<Bodies> {
  const { textBody, htmlBody } = bodies;
  const asHtml =
    htmlBody !== null ||
    (hasText(original.htmlBody) && Buffer.byteLength(textBody ?? '') <= MAX_TEXT_AS_HTML_BYTES);
  const note = htmlBody ?? (hasText(textBody) ? textToHtml(textBody, { maxBytes: MAX_BODY_BYTES }) : '');
  const text = async (own: string) =>
    buildForwardedText(own, original, {
      text: await getOriginalText(original, converter),
      maxBytes: quoteBudgetBytes(own),
    });
  const options = { maxBytes: quoteBudgetBytes(note), keepInlineImages };
  const html = async () =>
    insertBeforeBodyEnd(
      note,
      buildForwardedHtml(original, await buildOriginalFragment(original, options, converter)),
    );
  return {
    textBody: textBody === null && htmlBody !== null ? null : await text(textBody ?? ''),
    htmlBody: asHtml ? await html() : null,
  };
}

function quoteBudgetBytes(body: string): number {
  const availableBytes = MAX_BODY_BYTES - Buffer.byteLength(body) - QUOTE_OVERHEAD_BYTES;
  return Math.max(0, Math.min(availableBytes, MAX_QUOTE_BYTES));
}

function buildTextQuote(original: Original, text: string, maxBytes: number): string {
  if (text === '' || maxBytes === 0) return '';
  return `\n\n${buildAttribution(original)}\n${quoteLines(text, maxBytes)}\n`;
}

/** RFC 3676 section 4.5: one quote mark per line, and no space between two marks. */
export function quoteLines(text: string, maxBytes: number): string {
  const lines: string[] = [];
  let remainingBytes = maxBytes;
  for (const line of text.replace(/\r\n?/g, '\n').trimEnd().split('\n')) {
    const quoted = line === '' || line.startsWith('>') ? `>${line}` : `> ${line}`;
    const bytes = Buffer.byteLength(quoted) + 1;
    if (bytes > remainingBytes) {
      lines.push(remainingBytes > 100 ? truncateToBytes(quoted, remainingBytes) : `> ${TRUNCATION_MARK}`);
      break;
    }
    remainingBytes -= bytes;
    lines.push(quoted);
  }
  return lines.join('\n');
}

/** Mail clients recognize and collapse a quote by these class names; others look for `type=cite`. */
async function buildHtmlQuote(original: Original, maxBytes: number, converter: Converter): Promise<string> {
  const options = { maxBytes, keepInlineImages: false };
  const fragment = await buildOriginalFragment(original, options, converter);
  if (fragment === '' || maxBytes === 0) return '';
  return (
    `<br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">${escapeHtml(buildAttribution(original))}<br></div>` +
    '<blockquote type="cite" style="margin:0 0 0 0.8ex;border-left:1px solid #ccc;padding-left:1ex">' +
    `${fragment}</blockquote></div>`
  );
}

const FORWARD_LINE = '---------- Forwarded message ---------';

function buildForwardedText(
  note: string,
  original: Original,
  { text, maxBytes }: { text: string; maxBytes: number },
): string {
  const above = note.trim() === '' ? '' : `${note.trimEnd()}\n\n`;
  const header = buildHeaderBlock(original).map(([name, value]) => `${name}: ${value}`);
  return `${above}${[FORWARD_LINE, ...header].join('\n')}\n\n${truncateToBytes(text, maxBytes)}\n`;
}

function buildForwardedHtml(original: Original, fragment: string): string {
  const header = buildHeaderBlock(original).map(
    ([name, value]) => `<b>${name}:</b> ${escapeHtml(value)}<br>`,
  );
  return (
    `<br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">${FORWARD_LINE}<br>${header.join('')}</div><br>` +
    `${fragment}</div>`
  );
}

/** The HTML may be a complete document, so additions are inserted before `</body>`. */
function insertBeforeBodyEnd(html: string, addition: string): string {
  const end = [...html.matchAll(/<\/body/gi)].at(-1)?.index ?? html.length;
  return html.slice(0, end) + addition + html.slice(end);
}

/** The text that the sender of the original wanted to be read; see `isStub`. */
async function getOriginalText({ textBody, htmlBody }: Original, converter: Converter): Promise<string> {
  const text = stripInvisible(textBody ?? '')
    .text.replace(/\r\n?/g, '\n')
    .trimEnd();
  if (!hasText(htmlBody) || (hasText(text) && !mayBeStub(text))) return text;
  const htmlText = await converter.toText(htmlBody);
  return !hasText(text) || isStub(text, htmlText) ? htmlText : text;
}

async function buildOriginalFragment(
  { textBody, htmlBody }: Original,
  options: ForwardOptions & { maxBytes: number },
  converter: Converter,
): Promise<string> {
  if (hasText(htmlBody)) return converter.sanitize(htmlBody, options);
  return hasText(textBody) ? textToHtml(stripInvisible(textBody).text.trimEnd(), options) : '';
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

/** Tolerated clock skew of a sender. */
const CLOCK_SKEW_MS = 24 * 3_600_000;

/** The Date of an inbound message if it is plausible; otherwise when the message was received or sent. */
function dateOf({ headers, receivedAt, sentAt, createdAt }: Original): Date {
  const recordedAt = receivedAt ?? sentAt ?? createdAt;
  const headerDate = new Date(receivedAt ? (headers.date ?? '') : '');
  const isPlausible = headerDate.getTime() > 0 && headerDate.getTime() < recordedAt.getTime() + CLOCK_SKEW_MS;
  return isPlausible ? headerDate : recordedAt;
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

/** Prevents untrusted text from starting a new line within generated text. */
function toSingleLine(text: string): string {
  return text
    .replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
    .slice(0, MAX_LINE_CHARACTERS)
    .toWellFormed();
}
