import { sql } from '@mikro-orm/core';
import type { RowReader } from '../../platform/database/find-rows.ts';
import { STORAGE_COUNTER, USAGE_COUNTERS, type UsageCounter } from './counters.ts';
import { type EffectiveLimit, effectiveLimit, type LimitInputs } from './effective-limit.ts';
import { joinLimits, LIMIT_COLUMNS, type LimitInputsRow, toLimitInputs } from './limit-inputs.ts';
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

interface UsageStatusRow extends LimitInputsRow {
  organizationId: string;
  counter: UsageCounter;
  warningPercent: number | null;
  current: number;
}

/** Reads exact usage, including deltas that are not applied yet, in one statement. */
export async function readUsageStatuses(
  reader: RowReader,
  { organizationIds, counters = USAGE_COUNTERS, at }: UsageStatusQuery,
): Promise<UsageStatus[]> {
  if (organizationIds.length === 0 || counters.length === 0) return [];
  const { start, end } = monthOf(at);
  const rows = await reader.execute<UsageStatusRow[]>(
    sql`select o.id as "organizationId", k.counter, ${LIMIT_COLUMNS}, w.warning_percent as "warningPercent",
       greatest(0, coalesce(u.amount, 0) + coalesce((
         select sum(d.amount) from usage_deltas d
         where d.org_id = o.id and d.counter = k.counter
           and (k.counter = ${STORAGE_COUNTER} or d.at >= m.start and d.at < m.end)), 0))::float8 as current
     from organizations o
     cross join unnest(array[${counters}]) as k (counter)
     cross join (select ${start.toISOString()}::timestamptz as start, ${end.toISOString()}::timestamptz as end) as m
     ${joinLimits(sql`k.counter`)}
     left join usage_counters u on u.org_id = o.id and u.counter = k.counter
       and u.period_start = case when k.counter = ${STORAGE_COUNTER} then 'epoch' else m.start end
     where o.id in (${organizationIds})`,
  );
  return rows.map((row) => {
    const limitInputs = toLimitInputs(row);
    return {
      organizationId: row.organizationId,
      counter: row.counter,
      current: row.current,
      limit: effectiveLimit(row.counter, limitInputs),
      limitInputs,
      warningPercent: row.warningPercent ?? DEFAULT_WARNING_PERCENT,
    };
  });
}
