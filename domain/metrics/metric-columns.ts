import { p } from '@mikro-orm/core';
import { COUNT_COLUMNS, type CountColumn } from './metric-counts.ts';

const countColumn = () => p.integer().default(0);

/** An integer column for each of `COUNT_COLUMNS`, shared by hours and deltas. */
export const countColumns = () =>
  Object.fromEntries(COUNT_COLUMNS.map((name) => [name, countColumn()])) as Record<
    CountColumn,
    ReturnType<typeof countColumn>
  >;
