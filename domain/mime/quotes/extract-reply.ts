import { runWithTimeout } from '../../../platform/run-with-timeout.ts';
import { htmlToText } from '../html-to-text.ts';
import { findAttribution } from './attributions.ts';
import { markHtmlQuotes, toMarkedLines } from './html-quotes.ts';
import { toLines } from './lines.ts';
import { extractReplyLines, type ReplyLines } from './reply-text.ts';

const MAX_TEXT_CHARACTERS = 524_288;
/** Ordinary messages take well under a millisecond. */
const EXTRACT_TIMEOUT_MS = 500;
const MARK_TIMEOUT_MS = 500;
/** Removing a quote may reveal another one. Real messages need fewer passes. */
const MAX_PASSES = 4;

/**
 * Extracts what the author of a message wrote, without quoted messages, signature and mail program advertising;
 * `docs/mail.md` lists the rules. Returns an empty string for a reply without text, and the forwarded message for a
 * bare forward. Packages such as `email-reply-parser` find about half of the replies in the fixtures.
 *
 * If a message has both bodies, the text is used unless only the HTML marks what is quoted.
 *
 * @returns at most 524,288 characters (twice that if quoted lines of HTML are included), in bounded time for any input.
 */
export function extractReply({ text, html }: { text: string | null; html: string | null }): string {
  const hasText = text !== null && text.trim() !== '';
  const fromText = hasText ? extractFromText(text.slice(0, MAX_TEXT_CHARACTERS)) : null;
  if (fromText !== null && (fromText.hasQuotes || html === null)) return fromText.text;
  const fromHtml = html === null ? null : extractFromHtml(html);
  if (fromText === null) return fromHtml?.text ?? '';
  return fromHtml?.hasQuotes && fromHtml.text !== '' ? fromHtml.text : fromText.text;
}

interface Extraction {
  text: string;
  hasQuotes: boolean;
}

function extractFromText(text: string): Extraction {
  const first = runWithTimeout(EXTRACT_TIMEOUT_MS, () => extractReplyLines(toLines(text)));
  return first === null ? removeQuotedLines(text) : extractRepeatedly(first);
}

function extractFromHtml(html: string): Extraction {
  const marked = runWithTimeout(MARK_TIMEOUT_MS, () => markHtmlQuotes(html));
  if (marked === null) return { text: htmlToText(html), hasQuotes: false };
  const first = runWithTimeout(EXTRACT_TIMEOUT_MS, () =>
    extractReplyLines(toMarkedLines(htmlToText(marked))),
  );
  if (first === null) return removeQuotedLines(htmlToText(html));
  if (first.lines.length > 0) return extractRepeatedly(first);
  // Everything is quoted. For a forward, the quoted message is the content; a reply without text is empty.
  const allText = htmlToText(html);
  return startsWithAttribution(allText) ? { text: '', hasQuotes: true } : { text: allText, hasQuotes: false };
}

function startsWithAttribution(whole: string): boolean {
  const lines = toLines(whole);
  return findAttribution(lines, 0) !== null;
}

function extractRepeatedly({ lines, hasQuotes }: ReplyLines): Extraction {
  let text = lines.join('\n').trim();
  for (let pass = 1; pass < MAX_PASSES; pass += 1) {
    const nextPass = runWithTimeout(EXTRACT_TIMEOUT_MS, () => extractReplyLines(toLines(text)));
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
