import type { EntityManager } from '@mikro-orm/postgresql';
import { LEVEL_COUNTER, type UsageCounter } from './counters.ts';
import { effectiveLimit } from './effective-limit.ts';
import { usageLimitExceeded } from './limit-exceeded.ts';
import { FACTS, type FactsRow, factsOf, readFacts } from './limit-facts.ts';
import { monthOf } from './periods.ts';
import { HARD_TIERS } from './tiers.ts';

export interface UsageChange {
  organizationId: string;
  counter: UsageCounter;
  amount: number;
  /** Decides the month. */
  at: Date;
}

interface CountedRow extends FactsRow {
  /** What the counter's row stands at, this change included; empty where the change is a delta. */
  counted: number | null;
  /** What is not folded in yet adds no more than this. */
  pending_at_most: number;
}

/** Whether something may be refused: only then the counter's row is locked and everybody who counts waits for it. */
const MAY_REFUSE = `case when v.kind is null then o.tier in (${HARD_TIERS.map((tier) => `'${tier}'`).join(', ')})
  else v.kind = 'hard' end or w.amount is not null`;

const COUNT = `with facts as (
    select o.id, ${FACTS}, ${MAY_REFUSE} as exact from organizations o ${factsOf('?')} where o.id = ?),
  counted as (
    insert into usage_counters as c (org_id, counter, period_start, amount)
    select id, ?, ?::timestamptz, ? from facts where exact
    on conflict (org_id, counter, period_start) do update set amount = c.amount + excluded.amount
    returning c.amount),
  hourly as (
    insert into usage_hours as h (org_id, counter, hour, amount)
    select facts.id, ?, date_trunc('hour', ?::timestamptz, 'UTC'), ? from facts, counted
    on conflict (org_id, counter, hour) do update set amount = h.amount + excluded.amount),
  noted as (
    insert into usage_deltas (org_id, counter, at, amount) select id, ?, ?, ? from facts where not exact)
  select facts.*, counted.amount::float8 as counted,
    case when exact then (${pendingSql('greatest(amount, 0)')}) else 0 end as pending_at_most
  from facts left join counted on true`;

/** Deltas of a month that are not folded in yet. */
function pendingSql(amount: string): string {
  return `select coalesce(sum(${amount}), 0)::float8 as pending from usage_deltas
    where org_id = ? and counter = ? and at >= ?::timestamptz and at < ?::timestamptz`;
}

/**
 * Counts, and refuses what is beyond a hard limit, in one statement. Belongs at the end of its transaction: where
 * something may be refused the counter's row stays locked until the commit, so of many that race for the last unit one
 * gets it. Elsewhere a delta is written and nobody waits.
 *
 * @throws AppError `usage_limit_exceeded`; the transaction has to roll back then.
 */
export async function countWithinLimit(em: EntityManager, change: UsageChange): Promise<void> {
  const { organizationId, counter, amount, at } = change;
  if (counter === LEVEL_COUNTER) throw new Error('Triggers count what is stored');
  const { start, end } = monthOf(at);
  const month = [start.toISOString(), end.toISOString()];
  const time = at.toISOString();
  const [row] = await em.execute<CountedRow[]>(COUNT, [
    counter,
    counter,
    organizationId,
    counter,
    month[0],
    amount,
    counter,
    time,
    amount,
    counter,
    time,
    amount,
    organizationId,
    counter,
    ...month,
  ]);
  if (!row || row.counted === null) return;
  const limit = effectiveLimit(counter, readFacts(row));
  const { refusedAbove } = limit;
  if (refusedAbove === null) return;
  // What was folded in while this waited for the row is in both, also what was given back, which would make room twice:
  // so that only counts as used here, and near the limit is asked again, now that the row stays as it is.
  if (row.counted + row.pending_at_most <= refusedAbove) return;
  const pending = await readPending(em, [organizationId, counter, ...month]);
  if (row.counted + pending > refusedAbove) throw usageLimitExceeded(counter, limit, at);
}

async function readPending(em: EntityManager, values: unknown[]): Promise<number> {
  const [row] = await em.execute<{ pending: number }[]>(pendingSql('amount'), values);
  return row?.pending ?? 0;
}

/** Counts without a limit, or gives back (a negative amount). Nobody waits for anybody. */
export async function noteUsage(
  em: EntityManager,
  { organizationId, counter, amount, at }: UsageChange,
): Promise<void> {
  await em.execute('insert into usage_deltas (org_id, counter, at, amount) values (?, ?, ?, ?)', [
    organizationId,
    counter,
    at.toISOString(),
    amount,
  ]);
}
