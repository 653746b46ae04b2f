import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Sql } from '../../platform/database/sql.ts';
import { STORAGE_COUNTER, type UsageCounter } from './counters.ts';
import { effectiveLimit } from './effective-limit.ts';
import { usageLimitExceeded } from './limit-errors.ts';
import { joinLimits, LIMIT_COLUMNS, type LimitInputsRow, toLimitInputs } from './limit-inputs.ts';
import { monthOf } from './periods.ts';
import { HARD_TIERS } from './tiers.ts';

export interface UsageChange {
  organizationId: string;
  counter: UsageCounter;
  amount: number;
  /** Determines the month that is charged. */
  at: Date;
}

interface CountedRow extends LimitInputsRow {
  /** The counter's row including this change; null if the change was written as a delta. */
  counted: number | null;
  /** Upper bound of the deltas that are not applied yet. */
  maxPending: number;
}

/** SQL: whether a hard limit applies. Only then is the counter's row updated directly, which serializes its writers. */
const IS_ENFORCED = sql`case when v.kind is null then o.tier in (${[...HARD_TIERS]})
  else v.kind = 'hard' end or w.amount is not null`;

const countSql = ({ organizationId, counter, amount, at }: UsageChange) => {
  const time = at.toISOString();
  const monthStart = monthOf(at).start.toISOString();
  return sql`with org as (
      select o.id, ${LIMIT_COLUMNS}, ${IS_ENFORCED} as is_enforced
      from organizations o ${joinLimits(sql`${counter}`)} where o.id = ${organizationId}),
    counted as (
      insert into usage_counters as c (org_id, counter, period_start, amount)
      select id, ${counter}, ${monthStart}::timestamptz, ${amount} from org where is_enforced
      on conflict (org_id, counter, period_start) do update set amount = c.amount + excluded.amount
      returning c.amount),
    hourly as (
      insert into usage_hours as h (org_id, counter, hour, amount)
      select org.id, ${counter}, date_trunc('hour', ${time}::timestamptz, 'UTC'), ${amount} from org, counted
      on conflict (org_id, counter, hour) do update set amount = h.amount + excluded.amount),
    deferred as (
      insert into usage_deltas (org_id, counter, at, amount)
      select id, ${counter}, ${time}, ${amount} from org where not is_enforced)
    select org.*, counted.amount::float8 as counted,
      case when is_enforced then (${pendingSql({ organizationId, counter, at }, sql`greatest(amount, 0)`)}) else 0 end
        as "maxPending"
    from org left join counted on true`;
};

/** SQL that counts usage without a limit, for statements of other rooms that count what they write. */
export function insertUsageDeltasSql(rows: Sql): Sql {
  return sql`insert into usage_deltas (org_id, counter, at, amount) ${rows}`;
}

/** SQL: the sum of a month's deltas that are not applied yet. */
function pendingSql({ organizationId, counter, at }: Omit<UsageChange, 'amount'>, amount: Sql): Sql {
  const { start, end } = monthOf(at);
  return sql`select coalesce(sum(${amount}), 0)::float8 as pending from usage_deltas
    where org_id = ${organizationId} and counter = ${counter}
      and at >= ${start.toISOString()}::timestamptz and at < ${end.toISOString()}::timestamptz`;
}

/**
 * Counts a change and enforces a hard limit in one statement. Call it at the end of the transaction: under a hard limit
 * the counter's row stays locked until the commit, so that only one of several concurrent callers gets the last unit.
 * Without a hard limit it inserts a delta and takes no lock.
 *
 * @throws AppError `usage_limit_exceeded`; the caller must roll back.
 */
export async function countWithinLimit(em: EntityManager, change: UsageChange): Promise<void> {
  const { counter, at } = change;
  if (counter === STORAGE_COUNTER) throw new Error('storage_bytes is counted by triggers');
  const [row] = await em.execute<CountedRow[]>(countSql(change));
  if (!row || row.counted === null) return;
  const limit = effectiveLimit(counter, toLimitInputs(row));
  const { enforcedLimit } = limit;
  if (enforcedLimit === null) return;
  // Deltas applied while this statement waited for the row are in both numbers. Refunds among them would be subtracted
  // twice, so `maxPending` ignores refunds; near the limit the exact sum is read again, now that the row is locked.
  if (row.counted + row.maxPending <= enforcedLimit) return;
  const pending = await readPending(em, change);
  if (row.counted + pending > enforcedLimit) throw usageLimitExceeded(counter, limit, at);
}

async function readPending(em: EntityManager, change: UsageChange): Promise<number> {
  const [row] = await em.execute<{ pending: number }[]>(pendingSql(change, sql`amount`));
  return row?.pending ?? 0;
}

/** Counts without checking a limit, or refunds (negative amount). Takes no lock. */
export async function recordUsage(
  em: EntityManager,
  { organizationId, counter, amount, at }: UsageChange,
): Promise<void> {
  await em.execute(
    sql`insert into usage_deltas (org_id, counter, at, amount)
     values (${organizationId}, ${counter}, ${at.toISOString()}, ${amount})`,
  );
}
