/** A line of a comparison. `omitted`: replaces unchanged lines or lines beyond the limit; its text says how many. */
export interface DifferenceLine {
  change: 'same' | 'added' | 'removed' | 'omitted';
  text: string;
}

/** Unchanged lines shown around a change. */
const CONTEXT_LINES = 2;
export const MAX_DIFFERENCE_LINES = 1_000;
/** Maximum number of cells of the table below. Beyond it, the whole changed part is shown as removed and added. */
const MAX_CELLS = 1_000_000;

/** Compares two texts line by line and leaves out equal parts. Empty for equal texts. */
export function compareTexts(before: string, after: string): DifferenceLine[] {
  if (before === after) return [];
  const [old, current] = [toLines(before), toLines(after)];
  const start = countEqual(old, current, (lines, index) => lines[index]);
  const shorter = Math.min(old.length, current.length) - start;
  const end = Math.min(
    shorter,
    countEqual(old, current, (lines, index) => lines[lines.length - 1 - index]),
  );
  const lines = [
    ...old.slice(0, start).map(toLine('same')),
    ...compareMiddle(old.slice(start, old.length - end), current.slice(start, current.length - end)),
    ...old.slice(old.length - end).map(toLine('same')),
  ];
  return limitLines(omitUnchanged(lines));
}

const toLines = (text: string): string[] => (text === '' ? [] : text.split(/\r\n|\r|\n/));

const toLine = (change: DifferenceLine['change']) => (text: string) => ({ change, text });

function countEqual(
  one: readonly string[],
  other: readonly string[],
  at: (lines: readonly string[], index: number) => string | undefined,
): number {
  const length = Math.min(one.length, other.length);
  let count = 0;
  while (count < length && at(one, count) === at(other, count)) count += 1;
  return count;
}

/** Keeps a longest common subsequence of the lines. */
function compareMiddle(old: readonly string[], current: readonly string[]): DifferenceLine[] {
  const width = current.length + 1;
  if (old.length * current.length > MAX_CELLS)
    return [...old.map(toLine('removed')), ...current.map(toLine('added'))];
  // common[i * width + j]: the number of lines that old from i and current from j have in common.
  const common = new Uint32Array((old.length + 1) * width);
  const commonAt = (i: number, j: number): number => common[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = current.length - 1; j >= 0; j -= 1)
      common[i * width + j] =
        old[i] === current[j] ? commonAt(i + 1, j + 1) + 1 : Math.max(commonAt(i + 1, j), commonAt(i, j + 1));
  const lines: DifferenceLine[] = [];
  let [i, j] = [0, 0];
  while (i < old.length || j < current.length) {
    const [removed, added] = [old[i], current[j]];
    if (removed !== undefined && removed === added) {
      lines.push({ change: 'same', text: removed });
      i += 1;
      j += 1;
    } else if (removed !== undefined && (added === undefined || commonAt(i + 1, j) >= commonAt(i, j + 1))) {
      lines.push({ change: 'removed', text: removed });
      i += 1;
    } else {
      lines.push({ change: 'added', text: added ?? '' });
      j += 1;
    }
  }
  return lines;
}

function omitUnchanged(lines: readonly DifferenceLine[]): DifferenceLine[] {
  const isNearChange = new Uint8Array(lines.length);
  for (const [index, { change }] of lines.entries())
    if (change !== 'same')
      isNearChange.fill(1, Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1);
  const kept: DifferenceLine[] = [];
  let omitted = 0;
  const flush = () => {
    if (omitted > 0) kept.push(omission(omitted, 'unchanged'));
    omitted = 0;
  };
  for (const [index, line] of lines.entries()) {
    if (isNearChange[index] === 1) {
      flush();
      kept.push(line);
    } else omitted += 1;
  }
  flush();
  return kept;
}

const omission = (count: number, kind: string): DifferenceLine => ({
  change: 'omitted',
  text: `${count} ${kind} ${count === 1 ? 'line' : 'lines'}`,
});

function limitLines(lines: DifferenceLine[]): DifferenceLine[] {
  if (lines.length <= MAX_DIFFERENCE_LINES) return lines;
  const shown = lines.slice(0, MAX_DIFFERENCE_LINES - 1);
  return [...shown, omission(lines.length - shown.length, 'more')];
}
