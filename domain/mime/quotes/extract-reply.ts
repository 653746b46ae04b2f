import { withinTime } from '../../../platform/time-limit.ts';
import { textFromHtml } from '../html-to-text.ts';
import { attributionAt } from './attributions.ts';
import { markedLines, markHtmlQuotes } from './html-quotes.ts';
import { toLines } from './lines.ts';
import { type Reply, replyIn } from './reply-text.ts';

const MAX_TEXT_CHARACTERS = 524_288;
/** Ordinary mail takes well under a millisecond. */
const READ_TIMEOUT_MS = 500;
const MARK_TIMEOUT_MS = 500;
/** Taking something out may leave lines that together say something new; more often than this nobody's mail does. */
const MAX_PASSES = 4;

/**
 * What the writer of a mail wrote, without the mails quoted in it, signature and advertisement of the mail program. The
 * rules stand in `docs/mail.md`. A reply that says nothing gives an empty string, a bare forward the mail it forwards.
 *
 * Where a mail has both bodies, its text counts unless only its HTML tells what is quoted.
 *
 * @returns at most 524,288 characters (twice that where quoted lines of HTML are kept), in bounded time whatever the input.
 */
export function extractReply({ text, html }: { text: string | null; html: string | null }): string {
  const hasText = text !== null && text.trim() !== '';
  const inText = hasText ? fromText(text.slice(0, MAX_TEXT_CHARACTERS)) : null;
  if (inText !== null && (inText.quotes || html === null)) return inText.words;
  const inHtml = html === null ? null : fromHtml(html);
  if (inText === null) return inHtml?.words ?? '';
  return inHtml?.quotes && inHtml.words !== '' ? inHtml.words : inText.words;
}

interface Found {
  words: string;
  quotes: boolean;
}

function fromText(text: string): Found {
  const first = withinTime(READ_TIMEOUT_MS, () => replyIn(toLines(text)));
  return first === null ? withoutQuotedLines(text) : settled(first);
}

function fromHtml(html: string): Found {
  const marked = withinTime(MARK_TIMEOUT_MS, () => markHtmlQuotes(html));
  if (marked === null) return { words: textFromHtml(html), quotes: false };
  const first = withinTime(READ_TIMEOUT_MS, () => replyIn(markedLines(textFromHtml(marked))));
  if (first === null) return withoutQuotedLines(textFromHtml(html));
  if (first.lines.length > 0) return settled(first);
  // All of it is quoted: a forward is what its sender has to say, an answer without words says nothing.
  const whole = textFromHtml(html);
  return answersNothing(whole) ? { words: '', quotes: true } : { words: whole, quotes: false };
}

function answersNothing(whole: string): boolean {
  const lines = toLines(whole);
  return attributionAt(lines, 0) !== null;
}

function settled({ lines, quotes }: Reply): Found {
  let words = lines.join('\n').trim();
  for (let pass = 1; pass < MAX_PASSES; pass += 1) {
    const again = withinTime(READ_TIMEOUT_MS, () => replyIn(toLines(words)));
    const next = again?.lines.join('\n').trim() ?? words;
    if (next === words || next === '') break;
    words = next;
  }
  return { words, quotes };
}

/** The plain rule for what cannot be read in time: lines that start with `>` are quoted. */
function withoutQuotedLines(text: string): Found {
  const kept = text.split(/\r?\n/).filter((line) => !/^\s?>/.test(line));
  return { words: kept.join('\n').trim(), quotes: kept.length > 0 };
}
