import { findAttribution, isSentence } from './attributions.ts';
import { classifyDivider, countHeaderBlockLines, isReplyAboveMarker, isRule } from './header-blocks.ts';
import { markInitialQuotes } from './initials.ts';
import { type Line, normalizeText, toLine } from './lines.ts';
import { isMobileSignature } from './mobile-signatures.ts';
import { ADDED_LINE, splitSharedLines } from './shared-lines.ts';

export interface ReplyLines {
  /** Lines of the message; empty if all of it is quoted. */
  lines: string[];
  /** Whether quoted text was found, even if it was not removed. */
  hasQuotes: boolean;
}

/**
 * Separates the author's own text from quoted text.
 *
 * - Removes everything from the start of an unquoted history (`-----Original Message-----`, `From: … Subject: …`,
 * `On … wrote:` without `>` below).
 * - Removes quoted lines at the start or the end, or with an attribution: a reply above, below or around one quote.
 * - Keeps quoted lines between answers and passages that the author quoted manually.
 */
export function extractReplyLines(received: Line[]): ReplyLines {
  const lines = splitSharedLines(received);
  markInitialQuotes(lines);
  const { cut, forward } = findHistory(lines);
  const runs = restorePassages(groupIntoRuns(lines.slice(0, cut ?? lines.length)), cut !== null);
  const quotes = cut !== null || runs.some((run) => run.quoted);
  const hasOwnText = hasText(runs.filter((run) => !run.quoted).flatMap((run) => run.lines));
  if (!hasOwnText && (forward || (cut !== null && runs.length === 0)))
    return { lines: getAllLines(received), hasQuotes: false };
  return { lines: selectLines(removeSignatures(runs)), hasQuotes: quotes };
}

interface History {
  /** The line where history without `>` starts; null if there is none. */
  cut: number | null;
  /** Whether the message starts with the announcement of a forwarded message. */
  forward: boolean;
}

/** Finds where history starts, and turns announcements above quoted lines into `attribution` lines. */
function findHistory(lines: Line[]): History {
  let foundOwnText = false;
  let forward = false;
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at];
    if (line === undefined || line.kind === 'blank' || line.kind === 'quoted') continue;
    if (line.kind === 'cut') return { cut: at, forward };
    const announced = line.kind === 'text' ? findAnnouncement(lines, at) : null;
    if (announced === null) {
      foundOwnText ||= line.kind === 'text';
      if (
        line.kind === 'attribution' &&
        !foundOwnText &&
        classifyDivider([{ ...line, kind: 'text' }], 0) === 'forward'
      )
        forward = true;
      continue;
    }
    if (announced.forward && !hasText(lines.slice(0, at)))
      return { cut: restoreForwardedText(lines, at), forward: true };
    const below = nextNonBlank(lines, at + announced.lines);
    if (lines[below]?.kind !== 'quoted') {
      if (announced.weak) foundOwnText = true;
      else return { cut: includeRuleAbove(lines, at), forward };
      continue;
    }
    if (announced.weak && line.kind === 'text' && !hasNoTextBelow(lines, below) && foundOwnText) continue;
    if (announced.weak && !foundOwnText && isSentence(line.text)) continue;
    for (let inside = at; inside < at + announced.lines; inside += 1) {
      const part = lines[inside];
      if (part && part.kind !== 'blank') part.kind = 'attribution';
    }
    at += announced.lines - 1;
  }
  return { cut: null, forward };
}

/** Whether there is any text besides a signature. */
function hasText(lines: Line[]): boolean {
  return removeSignature(lines.filter(({ kind }) => kind === 'text')).length > 0;
}

/** A forwarded message without text above it is the content, so its quoted lines count as text. */
function restoreForwardedText(lines: Line[], at: number): number {
  for (const line of lines.slice(at)) if (line.kind === 'quoted') line.kind = 'text';
  return at;
}

interface Announcement {
  lines: number;
  weak: boolean;
  forward: boolean;
}

function findAnnouncement(lines: Line[], at: number): Announcement | null {
  const divider = classifyDivider(lines, at);
  if (divider !== null) {
    const below = nextNonBlank(lines, at + 1);
    const block = countHeaderBlockLines(lines, below, true);
    const attribution = block === null ? findAttribution(lines, below) : null;
    const found = block ?? attribution?.lines ?? 0;
    return { lines: found === 0 ? 1 : below - at + found, weak: false, forward: divider === 'forward' };
  }
  if (isReplyAboveMarker(lines[at])) return { lines: 1, weak: false, forward: false };
  const block = countHeaderBlockLines(lines, at, isRule(lines[previousNonBlank(lines, at - 1)]));
  if (block !== null) return { lines: block, weak: false, forward: false };
  const attribution = findAttribution(lines, at);
  return attribution && { ...attribution, forward: false };
}

function nextNonBlank(lines: Line[], from: number): number {
  let at = from;
  while (at < from + 4 && lines[at]?.kind === 'blank') at += 1;
  return at;
}

function previousNonBlank(lines: Line[], from: number): number {
  let at = from;
  while (at > from - 3 && lines[at]?.kind === 'blank') at -= 1;
  return at;
}

/** A rule directly above the history is part of it. */
function includeRuleAbove(lines: Line[], at: number): number {
  const above = previousNonBlank(lines, at - 1);
  return isRule(lines[above]) ? above : at;
}

function hasNoTextBelow(lines: Line[], from: number): boolean {
  for (let at = from; at < lines.length; at += 1) {
    if (lines[at]?.kind === 'text') return false;
  }
  return true;
}

interface Run {
  quoted: boolean;
  /** Whether an attribution precedes the quoted lines. */
  attributed: boolean;
  lines: Line[];
}

/** Blank lines belong to the run above; leading blank lines are dropped. */
function groupIntoRuns(lines: Line[]): Run[] {
  const runs: Run[] = [];
  for (const [at, line] of lines.entries()) {
    const run = runs.at(-1);
    if (line.kind === 'blank') {
      run?.lines.push(line);
      continue;
    }
    const quoted = line.kind === 'quoted' || line.kind === 'attribution' || isWrappedQuote(lines, at);
    if (run === undefined || run.quoted !== quoted || startsAnotherQuote(run, line))
      runs.push({ quoted, attributed: false, lines: [line] });
    else run.lines.push(line);
    const last = runs.at(-1);
    if (last && line.kind === 'attribution') last.attributed = true;
  }
  return runs;
}

/** An attribution below a passage announces another quote. */
function startsAnotherQuote(run: Run, line: Line): boolean {
  return line.kind === 'attribution' && isPassage(run);
}

function isPassage({ quoted, attributed, lines }: Run): boolean {
  return quoted && !attributed && lines.some((line) => line.isPassage);
}

/**
 * A plain `blockquote` is the author's passage if the quoted message is elsewhere, or if the passage starts the message
 * and text follows. The last `blockquote` without attribution is the quoted message.
 */
function restorePassages(runs: Run[], isFollowedByHistory: boolean): Run[] {
  const lastQuote = isFollowedByHistory ? runs.length : runs.findLastIndex((run) => run.attributed);
  const hasText = runs.some((run) => !run.quoted);
  return runs.map((run, at) => {
    const isAuthors = isPassage(run) && (at < lastQuote || (at === 0 && hasText));
    return isAuthors ? { ...run, quoted: false, lines: run.lines.map(removeQuoteMark) } : run;
  });
}

function removeQuoteMark(line: Line): Line {
  return line.kind === 'quoted' ? toLine(line.raw.replace(/^[ \t]{0,3}> ?/, '')) : line;
}

/** Text converters put the target of a link after its words, on a separate line, or wrapped. */
const LINK = /^[<(]https?:[^\s<>()]{1,500}[>)] ?>?$/i;
const OPEN_LINK = /[<(]https?:[^\s<>()]{1,500}$/i;

/** Whether the line is the end of a long quoted line that a program wrapped without `>`. */
function isWrappedQuote(lines: Line[], at: number): boolean {
  const [above, line, below] = [lines[at - 1], lines[at], lines[at + 1]];
  if (above?.kind !== 'quoted' || below?.kind !== 'quoted' || line?.kind !== 'text') return false;
  if (LINK.test(line.text) || (OPEN_LINK.test(above.text) && /^\S{1,200}[)>]$/.test(line.text))) return true;
  return above.text.length >= 68 && line.text.length <= 40 && /^[\p{Ll}\d(<]|^https?:/u.test(line.text);
}

/** Removes signatures, unless the text would be empty. */
function removeSignatures(runs: Run[]): Run[] {
  const stripped = runs.map((run) => (run.quoted ? run : { ...run, lines: removeSignature(run.lines) }));
  const left = stripped.filter((run) => run.quoted || run.lines.some((line) => line.kind !== 'blank'));
  return left.some((run) => !run.quoted) ? left : runs;
}

function removeSignature(lines: Line[]): Line[] {
  const separator = lines.findIndex((_line, at) => isSignatureSeparator(lines, at));
  const above = separator === -1 ? lines : lines.slice(0, separator);
  let end = above.length;
  while (end > 0 && isTrailer(above[end - 1])) end -= 1;
  const left = above.slice(0, end).filter((line) => line.kind !== 'signature');
  // Keeps the blank lines below as a separator.
  return left.length === 0
    ? left
    : [...left, ...lines.slice(lines.findLastIndex(({ kind }) => kind !== 'blank') + 1)];
}

function isTrailer(line: Line | undefined): boolean {
  return line === undefined || line.kind !== 'text' || isRule(line) || isMobileSignature(line.text);
}

const MAX_SIGNATURE_LINES = 15;

/** `-- ` (RFC 3676 section 4.3), with or without the space, and the underscores of mailing lists. */
function isSignatureSeparator(lines: Line[], at: number): boolean {
  const line = lines[at];
  if (line?.kind !== 'text') return false;
  if (/^--[ \u00a0]$/.test(line.raw)) return true;
  if (/^_{30,}$/.test(line.text)) return /mailing list|listinfo|unsubscribe/i.test(textBelow(lines, at, 4));
  if (!/^(?:--|—|––|__|___|---|-----?)$/.test(line.text)) return false;
  const below = lines.slice(at + 1, at + 2 + MAX_SIGNATURE_LINES).filter(({ kind }) => kind !== 'blank');
  if (line.text === '--') return below.length < MAX_SIGNATURE_LINES;
  // Webmail underscores are a separator only if a few lines follow that are not sentences.
  if (/^_{2,3}$/.test(line.text))
    return below.length > 0 && below.length <= 5 && below.every(({ text }) => isContactLine(text));
  return (
    below.length > 0 &&
    lines.length - at <= 10 &&
    below.every(({ text }) => isContactLine(text)) &&
    below.some(({ text }) => isContact(text))
  );
}

function textBelow(lines: Line[], at: number, count: number): string {
  return lines
    .slice(at + 1, at + 1 + count)
    .map(({ text }) => text)
    .join(' ');
}

/** Lines of a signature are short and are not sentences. */
function isContactLine(words: string): boolean {
  return words.length <= 70 && !/[?!]$|\p{Ll}\.$/u.test(words);
}

function isContact(words: string): boolean {
  return /@|https?:|www\.|\+?\d[\d ()./-]{6,}\d/.test(words);
}

function selectLines(runs: Run[]): string[] {
  const end = runs.findLastIndex((run) => !run.quoted) + 1;
  const quotes = runs.filter((run) => run.quoted).length;
  const interleaved = quotes > 1 && runs.slice(0, end).some((run) => run.quoted);
  const kept = runs
    .slice(0, end)
    .filter((run, at) => !run.quoted || interleaved || (at > 0 && !run.attributed));
  const lines = kept.flatMap((run) => run.lines);
  // If the attribution is kept, the reply must not become longer than the message.
  const shown = lines.filter((line, at) => line !== ADDED_LINE || !lines[at + 1]?.sharedLine);
  return trimBlankLines(shown.map(({ raw }) => raw));
}

function getAllLines(lines: Line[]): string[] {
  return trimBlankLines(lines.filter(({ kind }) => kind !== 'cut').map(({ raw }) => raw));
}

function trimBlankLines(lines: string[]): string[] {
  const filled = (line: string) => normalizeText(line) !== '' || (line.length > 1_000 && line.trim() !== '');
  const first = lines.findIndex(filled);
  return first === -1 ? [] : lines.slice(first, lines.findLastIndex(filled) + 1);
}
