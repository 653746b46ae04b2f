import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { STORAGE_COUNTER, USAGE_COUNTERS, type UsageCounter } from './counters.ts';
import { type EffectiveLimit, effectiveLimit, type LimitInputs } from './effective-limit.ts';
import { selectLimitInputs, toLimitInputs } from './limit-inputs.ts';
import { monthOf } from './periods.ts';

/** Current usage and limit of one counter of an organization. */
export interface UsageStatus {
  organizationId: string;
  counter: UsageCounter;
  current: number;
  limit: EffectiveLimit;
  limitInputs: LimitInputs;
  /** Percent of the limit at which owners are warned. */
  warningPercent: number;
}

const DEFAULT_WARNING_PERCENT = 80;

export interface UsageStatusQuery {
  organizationIds: readonly string[];
  counters?: readonly UsageCounter[];
  /** Any time within the month to read. */
  at: Date;
}

/** Reads exact usage, including deltas that are not applied yet, in one statement. */
export async function readUsageStatuses(
  db: Db,
  { organizationIds, counters = USAGE_COUNTERS, at }: UsageStatusQuery,
): Promise<UsageStatus[]> {
  if (organizationIds.length === 0 || counters.length === 0) return [];
  const { start, end } = monthOf(at);
  const rows = await selectLimitInputs(db, counters)
    .leftJoin('usage_counters as u', (join) =>
      join
        .onRef('u.org_id', '=', 'o.id')
        .on('u.counter', '=', sql<UsageCounter>`k.resource`)
        .on(
          'u.period_start',
          '=',
          sql<Date>`case when k.resource = ${STORAGE_COUNTER} then 'epoch' else ${start}::timestamptz end`,
        ),
    )
    .select((eb) => [
      'o.id as organizationId',
      sql<UsageCounter>`k.resource`.as('counter'),
      'w.warning_percent as warningPercent',
      sql<number>`greatest(0, coalesce(u.amount, 0) + ${eb
        .selectFrom('usage_deltas as d')
        .select(sql<number>`coalesce(sum(d.amount), 0)`.as('pending'))
        .whereRef('d.org_id', '=', 'o.id')
        .where('d.counter', '=', sql<UsageCounter>`k.resource`)
        .where(
          sql<boolean>`(k.resource = ${STORAGE_COUNTER} or d.at >= ${start} and d.at < ${end})`,
        )})::bigint`.as('current'),
    ])
    .where('o.id', '=', anyOf(organizationIds))
    .execute();
  return rows.map(({ organizationId, counter, current, warningPercent, ...row }) => {
    const limitInputs = toLimitInputs(row);
    return {
      organizationId,
      counter,
      current,
      limit: effectiveLimit(counter, limitInputs),
      limitInputs,
      warningPercent: warningPercent ?? DEFAULT_WARNING_PERCENT,
    };
  });
}
