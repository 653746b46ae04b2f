import type { EntityManager } from '@mikro-orm/postgresql';
import { LEVEL_COUNTER, USAGE_COUNTERS, type UsageCounter } from './counters.ts';
import { type EffectiveLimit, effectiveLimit, type LimitFacts } from './effective-limit.ts';
import { FACTS, type FactsRow, factsOf, readFacts } from './limit-facts.ts';
import { monthOf } from './periods.ts';

/** Where a counter of an organization stands, and how far it may go. */
export interface Standing {
  organizationId: string;
  counter: UsageCounter;
  current: number;
  limit: EffectiveLimit;
  facts: LimitFacts;
  /** Percent of the limit at which the owners are warned. */
  warningPercent: number;
}

export const DEFAULT_WARNING_PERCENT = 80;

export interface StandingsWanted {
  organizationIds: readonly string[];
  counters?: readonly UsageCounter[];
  /** Within the month asked for. */
  now: Date;
}

interface StandingRow extends FactsRow {
  org_id: string;
  counter: UsageCounter;
  warning_percent: number | null;
  current: number;
}

/** Exact: with what is not folded in yet. In one statement, however many there are. */
export async function readStandings(
  em: EntityManager,
  { organizationIds, counters = USAGE_COUNTERS, now }: StandingsWanted,
): Promise<Standing[]> {
  if (organizationIds.length === 0 || counters.length === 0) return [];
  const { start, end } = monthOf(now);
  const places = (values: readonly string[]) => values.map(() => '?').join(', ');
  const rows = await em.execute<StandingRow[]>(
    `select o.id as org_id, k.counter, ${FACTS}, w.warning_percent,
       greatest(0, coalesce(u.amount, 0) + coalesce((
         select sum(d.amount) from usage_deltas d
         where d.org_id = o.id and d.counter = k.counter
           and (k.counter = '${LEVEL_COUNTER}' or d.at >= m.start and d.at < m.end)), 0))::float8 as current
     from organizations o
     cross join unnest(array[${places(counters)}]) as k (counter)
     cross join (select ?::timestamptz as start, ?::timestamptz as end) as m
     ${factsOf('k.counter')}
     left join usage_counters u on u.org_id = o.id and u.counter = k.counter
       and u.period_start = case when k.counter = '${LEVEL_COUNTER}' then 'epoch' else m.start end
     where o.id in (${places(organizationIds)})`,
    [...counters, start.toISOString(), end.toISOString(), ...organizationIds],
  );
  return rows.map((row) => {
    const facts = readFacts(row);
    return {
      organizationId: row.org_id,
      counter: row.counter,
      current: row.current,
      limit: effectiveLimit(row.counter, facts),
      facts,
      warningPercent: row.warning_percent ?? DEFAULT_WARNING_PERCENT,
    };
  });
}
