import { sql } from '@mikro-orm/core';
import { type IdKind, lowestIdAt } from '../ids.ts';
import type { Sql } from './sql.ts';

export interface CreationRange {
  /** Created at or after this time. */
  from?: Date | undefined;
  /** Created before this time. */
  before?: Date | undefined;
}

/** Ids begin with the time of the process that made them, whose clock may differ by this much from the row's time. */
const CLOCK_SKEW_MS = 3_600_000;

/** Conditions for rows that were created within a range. They bound the scan by the ids, so a list in order of id stays fast. */
export function createdWithin(
  kind: IdKind,
  columns: { id: Sql; createdAt: Sql },
  { from, before }: CreationRange,
): Sql[] {
  const idAt = (time: Date, offsetMs: number): string =>
    lowestIdAt(kind, new Date(Math.max(0, time.getTime() + offsetMs)));
  const conditions: Sql[] = [];
  if (from)
    conditions.push(sql`${columns.createdAt} >= ${from} and ${columns.id} >= ${idAt(from, -CLOCK_SKEW_MS)}`);
  if (before)
    conditions.push(sql`${columns.createdAt} < ${before} and ${columns.id} < ${idAt(before, CLOCK_SKEW_MS)}`);
  return conditions;
}
