import { isDateAndName } from './date-and-name.ts';
import type { Line } from './lines.ts';
import { WROTE } from './quote-headers.ts';
import { findTrackerLine } from './tracker-lines.ts';

/** `On Mon, 2 Mar 2026 at 10:11, Bob <bob@example.com> wrote:` may wrap over this many lines. */
const MAX_LINES = 7;
const MAX_CHARACTERS = 400;

/** A weak attribution is valid only if quoted lines (`>`) follow. */
type Attribution = { lines: number; weak: boolean };

const ADDRESS = /[^\s<>@()[\]":;,]{1,64}@[^\s<>@()[\]":;,]{1,255}/;
const BRACKETED_ADDRESS = /[<([]\s*(?:mailto:)?[^\s<>@()[\]]{1,64}@[^\s<>@()[\]]{1,255}/;
const YEAR = /(?<!\d)(?:19|20)\d\d(?!\d)/;
const NUMERIC_DATE = /(?<!\d)\d{1,4}[./-]\s?\d{1,2}[./-]\s?\d{1,4}(?!\d)/;
const DAY_AND_MONTH =
  /(?<![\p{L}\d])\d{1,2}(?:st|nd|rd|th|er|\.)?(?: de| of)? \p{L}{3,12}|(?<!\p{L})\p{L}{3,12}\.? \d{1,2}(?!\d)|\d{1,2} ?[月월]/u;
const TIME = /(?<!\d)\d{1,2}(?:[:.h時时点點]|시 ?)\d{2}(?!\d)/;
/** Up to five words and a number: `On Mon, Mar 2`, `W dniu 2`, `2026-03-02`, `in a message dated 3/2`. */
const DATE_FIRST = /^["'“(*\s]*(?:[^\s\d<>@:!?]{1,16} ){0,5}(?:在|于|於)?[ (]?\d/u;
const ENDS_IN_COLON = /[:\uff1a]["*_ ]*$/u;
/** People write these before the verb; mail programs write a name. */
const PRONOUN = /(?<!\p{L})(?:I|we|you|he|she|they|it|ich|wir|du|er|sie|je|j['’]ai|nous|vous|yo|eu|io|ik)$/iu;
/** The Bat! and Eudora address the quoted author: `Sunday, June 14, 2026, 4:45:22 PM, you wrote:`. */
const YOU = /(?:^|[,\d\s])you$/i;
/** Attributions without a verb from the table: `Quoting Bob <bob@example.com>:`. */
const QUOTING =
  /^(?:quoting|citando|zitat von|citation de|selon|citando a|citat från|citaat van|quoth) .{2,120}[:\uff1a]$/iu;
/** `2011/4/7 Bob <bob@example.com>`: no verb, no time, no colon. */
const GMAIL_2011 = /^\d{4}[/-]\d{1,2}[/-]\d{1,2} [^<>@]{0,80}<[^\s<>@]{1,64}@[^\s<>@]{1,255}>$/;
/** The dashes around `---- On Mon, 2 Mar 2026, Bob wrote ----`. */
const DASHES = /^-{2,}\s*|\s*-{2,}$/g;

/** Returns the attribution that starts at this line, or null. */
export function findAttribution(lines: Line[], at: number): Attribution | null {
  const first = lines[at];
  if (first?.kind !== 'text') return null;
  const tracker = endsParagraph(lines[at - 1]) ? findTrackerLine(lines, at) : null;
  if (tracker !== null) return tracker;
  if (!mayBeAttribution(lines, at)) return null;
  if (hasQuoteOnSameLine(first.text)) return { lines: 1, weak: false };
  return findWithVerb(lines, at) ?? findDateAndName(lines, at);
}

function findWithVerb(lines: Line[], at: number): Attribution | null {
  let joined = '';
  for (let count = 1; count <= MAX_LINES; count += 1) {
    const line = lines[at + count - 1];
    if (line?.kind === 'blank' && isBrokenBeforeAddress(joined, lines[at + count])) continue;
    if (line === undefined || (line.kind !== 'text' && !isClosingBracket(joined, line))) return null;
    joined = joined === '' ? line.text : `${joined} ${line.text}`;
    if (joined.length > MAX_CHARACTERS) return null;
    const match = classifyAttribution(joined, endsParagraph(lines[at - 1]));
    if (match === null) continue;
    return count > 1 && beginsOnLaterLine(lines, at, count) ? null : { lines: count, weak: match === 'weak' };
  }
  return null;
}

/** `On Mon, 2 Mar 2026 at 10:11, Bob`, an empty line, `<bob@example.com> wrote:`. */
function isBrokenBeforeAddress(joined: string, next: Line | undefined): boolean {
  if (!DATE_FIRST.test(joined) || !TIME.test(joined)) return false;
  if (OPEN_BRACKET.test(joined)) return next?.kind === 'text' || next?.text.startsWith('> ') === true;
  if (next?.kind !== 'text') return false;
  return (
    /^(?:[<([](?:\S{3,320}|$)|< mailto:)/.test(next.text) ||
    (joined.endsWith(',') && BRACKETED_ADDRESS.test(next.text))
  );
}

/** Polymail: `Bob`, an empty line, `<`, `mailto:Bob <bob@example.com>`, `> wrote:`, with or without empty lines between. */
const OPEN_BRACKET = /<(?: ?mailto:[^<>@]{0,100}<[^\s<>@]{1,64}@[^\s<>@]{1,255}>)?$/;

/** `Bob <`, `bob@example.com`, `> wrote:`: the bracket resembles a quote mark. */
function isClosingBracket(joined: string, line: Line | undefined): boolean {
  return (
    line?.kind === 'quoted' &&
    (/<\s?[^\s<>@]{1,64}@[^\s<>@]{1,255}$/.test(joined) || OPEN_BRACKET.test(joined)) &&
    /^> ?[^<>]{0,40}:$/.test(line.text)
  );
}

/** Without a verb or an address, quoted lines must follow directly. */
function findDateAndName(lines: Line[], at: number): Attribution | null {
  const [first, second, third] = [lines[at], lines[at + 1], lines[at + 2]];
  const isQuoteBelow = second?.kind === 'quoted' || (second?.kind === 'blank' && third?.kind === 'quoted');
  if (!isQuoteBelow) return null;
  const words = first?.text ?? '';
  const verb = /\s\S{1,20}$/.exec(words)?.[0] ?? '';
  const bare = verb !== '' && WROTE.test(verb) ? words.slice(0, -verb.length) : words;
  return isDateAndName(bare) ? { lines: 1, weak: true } : null;
}

function endsParagraph(before: Line | undefined): boolean {
  return before === undefined || before.kind !== 'text';
}

/** A cheap check that rejects almost every line of prose. */
function mayBeAttribution(lines: Line[], at: number): boolean {
  const words = lines[at]?.text ?? '';
  if (DATE_FIRST.test(words) || /^-{2,}/.test(words)) return true;
  if (ENDS_IN_COLON.test(words)) return true;
  if (words.length <= 80 && VIA.test(words)) return true;
  if (BRACKETED_ADDRESS.test(words)) return words.length <= 200;
  const next = lines[at + 1];
  if (next?.kind !== 'text' || words.length > 60) return false;
  // "On Monday, Bob Smith" / "<bob@example.com> wrote:", or a date that starts on the next line.
  return (
    endsParagraph(lines[at - 1]) &&
    (/^[<([]/.test(next.text) || DATE_FIRST.test(next.text.replace(/^\S+ /, '')))
  );
}

/** Whether the quoted message follows on the same line, because an HTML converter lost the line break. */
function hasQuoteOnSameLine(words: string): boolean {
  if (words.length < 40 || !DATE_FIRST.test(words)) return false;
  const head = words.slice(0, MAX_CHARACTERS);
  const end = /[>)\]],? ?(\p{L}[^:<>]{0,20})[:\uff1a] /u.exec(head);
  if (end === null || !WROTE.test(end[1] ?? '')) return false;
  const before = head.slice(0, end.index + 1);
  return BRACKETED_ADDRESS.test(before) && TIME.test(before) && before.length < 200;
}

/** Excludes prose above an attribution: the attribution starts at the last line that can start one. */
function beginsOnLaterLine(lines: Line[], at: number, count: number): boolean {
  if (endsParagraph(lines[at - 1]) && isPartOfAttribution(lines[at]?.text ?? '')) return false;
  for (let later = 1; later < count; later += 1) {
    const rest = lines
      .slice(at + later, at + count)
      .map((line) => line.text)
      .join(' ');
    const begins = DATE_FIRST.test(rest) && /\p{L}/u.test(rest.slice(0, 1));
    if (!begins || classifyAttribution(rest, true) === null) continue;
    const first = lines[at]?.text ?? '';
    return hasLeadingPreposition(rest) || (!hasLeadingPreposition(first) && !/\d/.test(first));
  }
  return false;
}

/** A date with its preposition, or a name and an address. People do not end a paragraph with these. */
function isPartOfAttribution(words: string): boolean {
  const isDate =
    words.length <= 40 && hasLeadingPreposition(words) && DATE_FIRST.test(words) && /[\d,]$/.test(words);
  return isDate || isNameAndAddress(words, '');
}

/** `Mon, 2 Mar 2026 …` may continue a line that ends with `On`. A line with its own preposition does not. */
function hasLeadingPreposition(words: string): boolean {
  return /^(?:on|at|am|le|el|em|op|il|den|w|dnia|dne|på|pe|στις|în|في|בתאריך|在|于|於)(?![\p{L}])/iu.test(
    words,
  );
}

function classifyAttribution(joined: string, apart: boolean): 'strong' | 'weak' | null {
  const dashed = /^-{2,}.*-{2,}$/.test(joined);
  const words = joined.replace(DASHES, '').trim();
  const colon = ENDS_IN_COLON.test(words);
  if (GMAIL_2011.test(words)) return 'weak';
  if (!colon && !dashed && !/\p{L}$/u.test(words)) return null;
  if (colon && apart && isViaForum(words)) return 'strong';
  if (QUOTING.test(words)) return BRACKETED_ADDRESS.test(words) ? 'strong' : 'weak';
  const verb = WROTE.exec(words);
  const address = ADDRESS.test(words);
  const time = TIME.test(words);
  const date =
    (YEAR.test(words) && (DAY_AND_MONTH.test(words) || /\d.*\d/.test(words))) || NUMERIC_DATE.test(words);
  const dateFirst = DATE_FIRST.test(words);
  if (verb === null) {
    return colon && address && date && time && (dateFirst || BRACKETED_ADDRESS.test(words)) ? 'strong' : null;
  }
  return classifyWithVerb({
    words,
    verb,
    colon: colon || dashed,
    dashed,
    address,
    time,
    date,
    dateFirst,
    apart,
  });
}

/** `nina_b via Sailing Forum <forum@example.com> wrote:`, as forums and mailing lists name an author. */
const VIA =
  /^["'“*]?[^\s.!?:,<>]{1,40}(?: \p{Lu}[^\s!?:,<>]{0,30}){0,3}["'”*]? via \p{L}[^!?:<>]{0,60}(?:<[^<>]{0,330}> ?)?/u;

function isViaForum(words: string): boolean {
  const via = VIA.exec(words);
  if (via === null || words.length > 200) return false;
  const verb = WROTE.exec(words);
  return verb !== null && /^[\s:\uff1a"*_]*$/u.test(words.slice(verb.index + verb[0].length));
}

interface Traits {
  words: string;
  verb: RegExpExecArray;
  colon: boolean;
  dashed: boolean;
  address: boolean;
  time: boolean;
  date: boolean;
  dateFirst: boolean;
  apart: boolean;
}

function classifyWithVerb({
  words,
  verb,
  colon,
  dashed,
  address,
  time,
  date,
  dateFirst,
  apart,
}: Traits): 'strong' | 'weak' | null {
  const before = words.slice(0, verb.index).trim();
  const after = words.slice(verb.index + verb[0].length);
  const last = /^[\s:\uff1a"*_,.)]*$/u.test(after);
  if (!last && !mayFollowVerb(verb[0], after)) return null;
  if (YOU.test(before) && date && time && last) return 'strong';
  if (PRONOUN.test(before)) return colon && (date || address || time) ? 'weak' : null;
  const dayAndMonth = date || DAY_AND_MONTH.test(words);
  if (dashed && last) return 'strong';
  if (!colon) return dateFirst && last && date && time ? 'strong' : null;
  if (dateFirst && dayAndMonth && (address || time)) return 'strong';
  if (BRACKETED_ADDRESS.test(words) && (dayAndMonth || isNameAndAddress(before, after))) return 'strong';
  if (date && time) return 'strong';
  if (dateFirst && date && apart) return 'strong';
  return dayAndMonth || address || (apart && words.length <= 80) ? 'weak' : null;
}

/** `I agree with what Bob`: three words that do not start like a name. */
const SENTENCE = /^(?:I|As|Like|What|\p{Ll}{1,30}(?= \S+ \S)) /u;
/** `sure, Bob`, `ok. bob@example.com` */
const ANSWER = /^(?:\p{Ll}{1,30}[.,!?]|\p{L}{1,30}!) /u;

/** Whether a weak attribution is in fact a sentence of the author: `I agree with what Bob wrote:`, `sure, Bob wrote:`. */
export function isSentence(words: string): boolean {
  if (DATE_FIRST.test(words) || hasLeadingPreposition(words)) return false;
  const beforeVerb = words.slice(0, WROTE.exec(words)?.index ?? words.length);
  return SENTENCE.test(beforeVerb) || ANSWER.test(beforeVerb);
}

/** `schrieb Bob:`, `escreveu (segunda, 2/03/2026 à(s) 10:11):`, `wrote on 03/02/2026 10:11:00 AM:`. */
function mayFollowVerb(verb: string, after: string): boolean {
  if (after.length > 160 || /[!?]|\p{Ll}{3}\. \p{Lu}/u.test(after)) return false;
  return (
    !/^(?:wrote|writes)$/i.test(verb) ||
    /^ (?:on|at|am|le|the following on|in|\()/i.test(after) ||
    /^ ?\(/.test(after)
  );
}

/** Whether there is only a name and an address on one side of the verb. */
function isNameAndAddress(before: string, after: string): boolean {
  const name =
    /^["'“]?[^<>@!?:]{0,80}["'”]?\s*[<([]\s*(?:mailto:)?[^\s<>@]{1,64}@[^\s]{1,255}\s*[>)\]],?(?: \p{Ll}{1,4})?$/u;
  return name.test(before) || (before === '' && name.test(after.replace(/[:\uff1a\s]+$/u, '').trim()));
}
