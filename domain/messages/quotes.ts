import EmailReplyParser from 'email-reply-parser';
import { Parser } from 'htmlparser2';
import { withinTime } from '../../platform/time-limit.ts';
import { MAX_HTML_CHARACTERS, textFromHtml } from './html-text.ts';

/** A reply longer than this is not worth its regular expressions. */
const MAX_TEXT_CHARACTERS = 524_288;
/** Ordinary mail takes well under a millisecond; the parser's expressions can be made to take hours. */
const PARSE_TIMEOUT_MS = 250;
const CUT_TIMEOUT_MS = 500;

/**
 * What the writer of a mail wrote, without the mails quoted below it and without signature. A mail that is nothing but
 * quotes (a forward) comes back whole, since an empty answer would hide it.
 *
 * @returns at most 524,288 characters, in bounded time whatever the input.
 */
export function extractReply({ text, html }: { text: string | null; html: string | null }): string {
  if (text !== null && text.trim() !== '') return visibleReply(text.slice(0, MAX_TEXT_CHARACTERS));
  if (html === null) return '';
  const cut = withinTime(CUT_TIMEOUT_MS, () => cutHtmlQuotes(html)) ?? html;
  const written = textFromHtml(cut);
  if (written !== '') return visibleReply(written);
  return cut === html ? '' : textFromHtml(html);
}

const parser = new EmailReplyParser();

function visibleReply(text: string): string {
  const reply = withinTime(PARSE_TIMEOUT_MS, () => parser.parseReply(text)) ?? withoutQuotedLines(text);
  return reply.trim() === '' ? text.trim() : reply.trim();
}

/** The plain rule for text the parser gives up on: lines that start with `>` are quoted. */
function withoutQuotedLines(text: string): string {
  return text
    .split(/\r?\n/)
    .filter((line) => !/^\s?>/.test(line))
    .join('\n');
}

/** Classes and ids mail programs put around what they quote. */
const QUOTE_CLASSES = new Set([
  ...['gmail_quote', 'gmail_quote_container', 'yahoo_quoted', 'protonmail_quote', 'tutanota_quote'],
  ...['zmail_extra', 'moz-cite-prefix', 'moz-forward-container', 'ms-outlook-mobile-reference-message'],
]);
/** Outlook puts its quote beside these, not within: everything after them is quoted. */
const DIVIDER_IDS =
  /^(?:x_)*(?:divrplyfwdmsg|appendonsend|stopspelling|mail-editor-reference-message-container)$/;
/** The rule Outlook for Windows draws above `From: … Sent: …`. */
const DIVIDER_STYLE = /border-top:\s*solid\s+#(?:e1e1e1|b5c4df)\s+1\.0pt/;

/**
 * HTML without the quoted mails in it. The source is cut where the elements stand, so what remains is as it was written.
 * Read in one pass, without a tree: its depth and breadth are a stranger's choice.
 */
export function cutHtmlQuotes(html: string): string {
  const source = html.slice(0, MAX_HTML_CHARACTERS);
  const kept: string[] = [];
  let keptTo = 0;
  let depth = 0;
  let quotedFrom: number | null = null;
  let divided = false;
  /** Where a rule stands with no text after it: it belongs to the divider that may follow. */
  let ruleAt: number | null = null;
  const reader = new Parser({
    onopentag(name, attributes) {
      if (divided) return;
      if (quotedFrom !== null) depth += 1;
      else if (isDivider(attributes)) {
        divided = true;
        kept.push(source.slice(keptTo, ruleAt ?? reader.startIndex));
      } else if (isQuote(name, attributes)) {
        quotedFrom = depth;
        depth += 1;
        kept.push(source.slice(keptTo, reader.startIndex));
      } else {
        depth += 1;
        if (name === 'hr') ruleAt = reader.startIndex;
      }
    },
    ontext(text) {
      if (quotedFrom === null && text.trim() !== '') ruleAt = null;
    },
    onclosetag() {
      if (divided) return;
      depth -= 1;
      if (depth !== quotedFrom) return;
      quotedFrom = null;
      ruleAt = null;
      keptTo = reader.endIndex + 1;
    },
  });
  reader.end(source);
  if (!divided && quotedFrom === null) kept.push(source.slice(keptTo));
  return kept.join('');
}

type Attributes = Record<string, string>;

function isQuote(name: string, { class: classes = '', type = '' }: Attributes): boolean {
  if (name === 'blockquote' && type.toLowerCase() === 'cite') return true;
  return classes
    .split(/\s+/, 20)
    .some((word) => QUOTE_CLASSES.has(word.toLowerCase().replace(/^(?:x_)+/, '')));
}

function isDivider({ id = '', style = '' }: Attributes): boolean {
  return (
    DIVIDER_IDS.test(id.slice(0, 100).toLowerCase()) || DIVIDER_STYLE.test(style.slice(0, 500).toLowerCase())
  );
}
