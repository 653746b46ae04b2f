import { type Expression, type SqlBool, sql } from 'kysely';
import { type IdKind, lowestIdAt } from '../ids.ts';

export interface CreationRange {
  /** Created at or after this time. */
  from?: Date | undefined;
  /** Created before this time. */
  before?: Date | undefined;
}

/** Ids begin with the time of the process that made them, whose clock may differ by this much from the row's time. */
const CLOCK_SKEW_MS = 3_600_000;

/**
 * Conditions for rows of a table that were created within a range. They bound the scan by the ids, so a list in order of id
 * stays fast.
 */
export function createdIn(
  kind: IdKind,
  table: string,
  { from, before }: CreationRange,
): Expression<SqlBool>[] {
  const [id, createdAt] = [sql.ref(`${table}.id`), sql.ref(`${table}.created_at`)];
  const idAt = (time: Date, offsetMs: number): string =>
    lowestIdAt(kind, new Date(Math.max(0, time.getTime() + offsetMs)));
  const conditions: Expression<SqlBool>[] = [];
  if (from) conditions.push(sql`${createdAt} >= ${from} and ${id} >= ${idAt(from, -CLOCK_SKEW_MS)}`);
  if (before) conditions.push(sql`${createdAt} < ${before} and ${id} < ${idAt(before, CLOCK_SKEW_MS)}`);
  return conditions;
}
