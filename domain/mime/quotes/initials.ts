import { findAttribution } from './attributions.ts';
import type { Line } from './lines.ts';

/** `BS> text`, `BS>> text`, `Bob> text`: the quote marks of The Bat!, Supercite and GoldED. */
const MARK = /^(\p{L}{1,12})>{1,5}(?:(?= |$)|(?<=^\p{Lu}{2,3}>{1,5}))/u;
const INITIALS = /^(?:[\p{Lu}\p{Lo}]{1,3}|\p{Lu}{2}\p{Ll}|\p{Ll}{1,2})$/u;
/** Prompts of programs look the same. */
const PROMPTS = new Set(
  'sql ps sh irb ftp gdb cmd dos php db py cli iex git pig cql r c d e q n y x t'.split(' '),
);
/** A single letter may also be a type or a comparison, unless it is repeated. */
const MIN_LINES = 2;
/** Attributions end directly above the quote and have up to this many lines. */
const MAX_ATTRIBUTION_LINES = 3;

/**
 * Marks lines as quoted that start with the initials or the first name of the quoted author. Initials count if several
 * lines have them or an attribution is above; a name counts if the attribution above contains it.
 */
export function markInitialQuotes(lines: Line[]): void {
  const marks = lines.map((line) => (line.kind === 'text' ? (MARK.exec(line.text)?.[1] ?? null) : null));
  const accepted = findAcceptedMarks(lines, marks);
  if (accepted.size === 0) return;
  for (const [at, mark] of marks.entries()) {
    const line = lines[at];
    if (mark === null || line === undefined) continue;
    // A second level has the initials of another author.
    const isDeeper = /^\p{L}{1,12}>>/u.test(line.text) && lines[at - 1]?.kind === 'quoted';
    if (accepted.has(mark) || isDeeper) line.kind = 'quoted';
  }
}

function findAcceptedMarks(lines: Line[], marks: readonly (string | null)[]): Set<string> {
  const counts = new Map<string, number>();
  const accepted = new Set<string>();
  for (const [at, mark] of marks.entries()) {
    if (mark === null || accepted.has(mark)) continue;
    const count = (counts.get(mark) ?? 0) + 1;
    counts.set(mark, count);
    if (INITIALS.test(mark)) {
      const isRepeated = count >= MIN_LINES && !PROMPTS.has(mark.toLowerCase());
      if (isRepeated || (count === 1 && hasAttributionAbove(lines, at))) accepted.add(mark);
    } else if (count === 1 && isNamedAbove(lines, at, mark)) accepted.add(mark);
  }
  return accepted;
}

function hasAttributionAbove(lines: Line[], at: number): boolean {
  const last = previousFilled(lines, at);
  for (let first = last; first > last - MAX_ATTRIBUTION_LINES && first >= 0; first -= 1) {
    const found = findAttribution(lines, first);
    if (found !== null && first + found.lines === last + 1) return true;
  }
  return false;
}

/** Supercite writes `>>>>> "BS" == Bob Smith <bob@example.com> writes:`, which is a quoted line. */
function isNamedAbove(lines: Line[], at: number, name: string): boolean {
  const above = lines[previousFilled(lines, at)];
  return above !== undefined && /[:\uff1a]$/u.test(above.text) && above.text.includes(name);
}

function previousFilled(lines: Line[], at: number): number {
  const above = at - 1;
  return lines[above]?.kind === 'blank' ? above - 1 : above;
}
