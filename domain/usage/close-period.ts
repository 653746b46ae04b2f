import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../platform/ids.ts';
import type { Period } from './periods.ts';

/** Writes each organization's usage of a finished month to the ledger, once, including deltas not applied yet. */
export async function closePeriod(
  em: EntityManager,
  organizationIds: string[],
  { start, end }: Period,
  now: Date,
): Promise<void> {
  const period = { period_start: start.toISOString(), period_end: end.toISOString() };
  if (organizationIds.length === 0) return;
  const open = await em.execute<{ org_id: string; amounts: Record<string, number> }[]>(
    `select c.org_id, jsonb_object_agg(c.counter, c.amount + (
         select coalesce(sum(d.amount), 0) from usage_deltas d
         where d.org_id = c.org_id and d.counter = c.counter and d.at >= ? and d.at < ?)) as amounts
     from usage_counters c
     where c.period_start = ? and c.org_id in (${organizationIds.map(() => '?').join(', ')})
       and not exists (select from usage_events e
         where e.org_id = c.org_id and e.kind = 'period_closed' and e.data ->> 'period_start' = ?)
     group by c.org_id`,
    [period.period_start, period.period_end, period.period_start, ...organizationIds, period.period_start],
  );
  for (const { org_id, amounts } of open)
    await em.execute(
      `insert into usage_events (id, org_id, kind, counter, data, actor, at)
       values (?, ?, 'period_closed', null, ?::jsonb, 'system', ?) on conflict do nothing`,
      [newId('usageEvent'), org_id, JSON.stringify({ ...period, amounts }), now.toISOString()],
    );
}
