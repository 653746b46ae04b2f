import { findAttribution } from './attributions.ts';
import { type Line, toLine } from './lines.ts';

/** The blank line between a reply and the attribution that shared its line. It is not in the message. */
export const ADDED_LINE: Line = toLine('');

/** Longer lines are paragraphs. */
const MAX_CHARACTERS = 1_000;
/** An attribution may wrap over this many further lines. */
const MAX_FURTHER_LINES = 3;
const MAX_CANDIDATES = 5;
/** The start of an attribution after other words: `sure On Wed, Mar 4`, `sure On Wed, bob`, `gern --- Am 04.03.2026`. */
const BEGINS =
  /(?<=[^\s-])(?:[ \t]{1,20}|(?:[ \t]{0,20}-{2,20}[ \t]{0,20}))(?=(?:On|Am|Le|El|Em|Op|Il giorno|Den|W dniu|Dnia) (?:\d|\p{L}{2,12}(?:[.,]|\.?,? (?:den )?\p{L}{0,12}\.? ?\d)))/gu;

/**
 * Moves an attribution that shares a line with the reply to a separate line. In some mail programs, people can write in
 * front of an attribution. The text in front belongs to the author.
 */
export function splitSharedLines(lines: Line[]): Line[] {
  const firstText = lines.findIndex(({ kind }) => kind === 'text');
  return lines.flatMap((line, at) =>
    splitLine(line, lines.slice(at + 1, at + 1 + MAX_FURTHER_LINES), at > firstText),
  );
}

/** `Bob Smith On Wed, Mar 4`: below other text, this is the author of the quoted message. */
const NAME = /^\p{Lu}[\p{L}.'’-]{0,30}(?: \p{Lu}[\p{L}.'’-]{0,30}){1,3}$/u;

function splitLine(line: Line, below: Line[], isBelowText: boolean): Line[] {
  if (line.kind !== 'text' || line.raw.length > MAX_CHARACTERS) return [line];
  for (const { index, 0: gap } of [...line.raw.matchAll(BEGINS)].slice(-MAX_CANDIDATES)) {
    const attribution = toLine(line.raw.slice(index + gap.length));
    const reply = toLine(line.raw.slice(0, index));
    if (isBelowText && NAME.test(reply.text)) continue;
    const found =
      findAttribution([reply, attribution, ...below], 1) ?? findAttribution([attribution, ...below], 0);
    if (found === null || (found.weak && !isQuoteNext(below, found.lines - 1))) continue;
    return [reply, ADDED_LINE, { ...attribution, sharedLine: true }];
  }
  return [line];
}

/** A weak attribution counts only if quoted lines follow. */
function isQuoteNext(below: Line[], from: number): boolean {
  return below.slice(from).find(({ kind }) => kind !== 'blank')?.kind === 'quoted';
}
