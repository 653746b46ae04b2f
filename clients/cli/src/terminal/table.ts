import { visible } from './visible.ts';
import { cutTo, padTo, widthOf } from './width.ts';

export interface Column<Row> {
  title: string;
  value(row: Row): string | number | null | undefined;
  /** Gives way when the terminal is too narrow. Default: keeps its width, for example an id. */
  flexible?: true;
}

const GAP = '  ';
const LEAST_FLEXIBLE_WIDTH = 8;

/** A table as lines, which fit into the width if the fixed columns do. Cells are strangers' text and are escaped. */
export function formatTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  terminalWidth: number,
): string[] {
  const cells = rows.map((row) => columns.map(({ value }) => visible(String(value(row) ?? ''))));
  const titles = columns.map(({ title }) => title);
  const natural = columns.map((_, index) =>
    Math.max(...[titles, ...cells].map((line) => widthOf(line[index] ?? ''))),
  );
  const widths = shrink(natural, columns, terminalWidth - GAP.length * (columns.length - 1));
  return [titles, ...cells].map((line) =>
    line
      .map((cell, index) => padTo(cutTo(cell, widths[index] ?? 0), widths[index] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
}

/** Takes what is too much from the widest flexible column, again and again. */
function shrink<Row>(
  natural: readonly number[],
  columns: readonly Column<Row>[],
  available: number,
): number[] {
  const widths = [...natural];
  const total = () => widths.reduce((sum, width) => sum + width, 0);
  while (total() > available) {
    const flexible = columns.flatMap(({ flexible }, index) => (flexible ? [index] : []));
    const widest = flexible.reduce(
      (best, index) => ((widths[index] ?? 0) > (widths[best] ?? 0) ? index : best),
      flexible[0] ?? -1,
    );
    const width = widths[widest];
    if (width === undefined || width <= LEAST_FLEXIBLE_WIDTH) break;
    widths[widest] = width - 1;
  }
  return widths;
}

/** Names and values, one a line. */
export function formatFields(
  fields: readonly (readonly [string, string | number | null | undefined])[],
): string[] {
  const shown = fields.filter(([, value]) => value !== null && value !== undefined && value !== '');
  const width = Math.max(0, ...shown.map(([name]) => widthOf(name)));
  return shown.map(([name, value]) => `${padTo(name, width)}${GAP}${visible(String(value))}`);
}
