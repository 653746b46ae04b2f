import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';

/** A calendar month, UTC. */
export interface Period {
  start: Date;
  /** Exclusive: the start of the next month. */
  end: Date;
}

export function monthOf(time: Date): Period {
  const month = (offset: number) => new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + offset));
  return { start: month(0), end: month(1) };
}

/** When the day ends (UTC), and with it the daily caps. */
export function endOfDay(time: Date): Date {
  return new Date(Date.UTC(time.getUTCFullYear(), time.getUTCMonth(), time.getUTCDate() + 1));
}

/** Writes each organization's usage of a finished month to the ledger, once, including deltas not applied yet. */
export async function closePeriod(
  db: Db,
  organizationIds: readonly string[],
  { start, end }: Period,
  now: Date,
): Promise<void> {
  if (organizationIds.length === 0) return;
  const period = { period_start: start.toISOString(), period_end: end.toISOString() };
  const open = await db
    .selectFrom('usage_counters as c')
    .select((eb) => [
      'c.org_id as organizationId',
      sql<Record<string, number>>`jsonb_object_agg(c.counter, c.amount + ${eb
        .selectFrom('usage_deltas as d')
        .select(sql<number>`coalesce(sum(d.amount), 0)`.as('pending'))
        .whereRef('d.org_id', '=', 'c.org_id')
        .whereRef('d.counter', '=', 'c.counter')
        .where('d.at', '>=', start)
        .where('d.at', '<', end)})`.as('amounts'),
    ])
    .where('c.period_start', '=', start)
    .where('c.org_id', '=', anyOf(organizationIds))
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('usage_events as e')
            .select('e.id')
            .whereRef('e.org_id', '=', 'c.org_id')
            .where('e.kind', '=', 'period_closed')
            .where(sql`e.data ->> 'period_start'`, '=', period.period_start),
        ),
      ),
    )
    .groupBy('c.org_id')
    .execute();
  if (open.length === 0) return;
  const ids = open.map(() => newId('usageEvent'));
  const closed = sql<{ id: string; org_id: string; data: string }>`unnest(${ids}::text[], ${open.map(
    ({ organizationId }) => organizationId,
  )}::text[], ${open.map(({ amounts }) => JSON.stringify({ ...period, amounts }))}::jsonb[])`;
  await db
    .insertInto('usage_events')
    .columns(['id', 'org_id', 'kind', 'data', 'actor', 'at'])
    .expression((eb) =>
      eb
        .selectFrom(closed.as<'closed'>(sql`closed (id, org_id, data)`))
        .innerJoin('organizations', 'organizations.id', 'closed.org_id')
        .select([
          'closed.id',
          'closed.org_id',
          sql<'period_closed'>`'period_closed'`.as('kind'),
          'closed.data',
          sql<string>`'system'`.as('actor'),
          sql<Date>`${now}::timestamptz`.as('at'),
        ])
        // One that is deleted since the first statement is left out.
        .forKeyShare('organizations'),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}
