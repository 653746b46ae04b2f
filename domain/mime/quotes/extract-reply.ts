import { runWithTimeout } from '../../../platform/run-with-timeout.ts';
import { htmlToText } from '../html-to-text.ts';
import { isStub, mayBeStub } from '../stub-text.ts';
import { findAttribution } from './attributions.ts';
import { markHtmlQuotes, toMarkedLines } from './html-quotes.ts';
import { toLines } from './lines.ts';
import { extractReplyLines, type ReplyLines } from './reply-text.ts';

const MAX_TEXT_CHARACTERS = 524_288;
/** Ordinary messages take well under a millisecond. */
const TIMEOUT_MS = 500;
/** Removing a quote may reveal another one. Real messages need fewer passes. */
const MAX_PASSES = 4;

/**
 * Extracts what the author of a message wrote, without quoted messages, signature and mail program advertising;
 * `docs/messages.md` lists the rules. Returns an empty string for a reply without text, and the forwarded message for a
 * bare forward. Packages such as `email-reply-parser` find about half of the replies in the fixtures.
 *
 * If a message has both bodies, the text is used unless only the HTML marks what is quoted, or the text only points to the
 * HTML ({@link isStub}).
 *
 * @param timeoutMs limits the time of each step. After that, a simpler rule applies.
 * @param convert writes HTML as text, one line per paragraph.
 * @returns at most 524,288 characters (twice that if quoted lines of HTML are included).
 */
export function extractReply(
  { text, html }: { text: string | null; html: string | null },
  timeoutMs: number = TIMEOUT_MS,
  convert: ConvertHtml = htmlToText,
): string {
  const hasText = text !== null && text.trim() !== '';
  const fromText = hasText ? extractFromText(text.slice(0, MAX_TEXT_CHARACTERS), timeoutMs) : null;
  if (fromText !== null && (html === null || (fromText.hasQuotes && !mayBeStub(fromText.text))))
    return fromText.text;
  const fromHtml = html === null ? null : extractFromHtml(html, timeoutMs, convert);
  if (fromText === null) return fromHtml?.text ?? '';
  if (fromHtml !== null && isStub(fromText.text, fromHtml.text)) return fromHtml.text;
  if (fromText.hasQuotes) return fromText.text;
  return fromHtml?.hasQuotes && fromHtml.text !== '' ? fromHtml.text : fromText.text;
}

type ConvertHtml = (html: string, timeoutMs: number) => string;

interface Extraction {
  text: string;
  hasQuotes: boolean;
}

function extractFromText(text: string, timeoutMs: number): Extraction {
  const first = runWithTimeout(timeoutMs, () => extractReplyLines(toLines(text)));
  return first === null ? removeQuotedLines(text) : extractRepeatedly(first, timeoutMs);
}

function extractFromHtml(html: string, timeoutMs: number, convert: ConvertHtml): Extraction {
  const marked = runWithTimeout(timeoutMs, () => markHtmlQuotes(html));
  if (marked === null) return { text: convert(html, timeoutMs), hasQuotes: false };
  const first = runWithTimeout(timeoutMs, () => extractReplyLines(toMarkedLines(convert(marked, timeoutMs))));
  if (first === null) return removeQuotedLines(convert(html, timeoutMs));
  if (first.lines.length > 0) return extractRepeatedly(first, timeoutMs);
  // Everything is quoted. For a forward, the quoted message is the content; a reply without text is empty.
  const allText = convert(html, timeoutMs);
  return startsWithAttribution(allText) ? { text: '', hasQuotes: true } : { text: allText, hasQuotes: false };
}

function startsWithAttribution(whole: string): boolean {
  const lines = toLines(whole);
  return findAttribution(lines, 0) !== null;
}

function extractRepeatedly({ lines, hasQuotes }: ReplyLines, timeoutMs: number): Extraction {
  let text = lines.join('\n').trim();
  for (let pass = 1; pass < MAX_PASSES; pass += 1) {
    const nextPass = runWithTimeout(timeoutMs, () => extractReplyLines(toLines(text)));
    const next = nextPass?.lines.join('\n').trim() ?? text;
    if (next === text || next === '') break;
    text = next;
  }
  return { text, hasQuotes };
}

/** The fallback after a timeout: removes lines that start with `>`. */
function removeQuotedLines(text: string): Extraction {
  const kept = text.split(/\r?\n/).filter((line) => !/^\s?>/.test(line));
  return { text: kept.join('\n').trim(), hasQuotes: kept.length > 0 };
}
