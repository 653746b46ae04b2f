import { sql } from '@mikro-orm/core';
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
  const open = await em.execute<{ organizationId: string; amounts: Record<string, number> }[]>(
    sql`select c.org_id as "organizationId", jsonb_object_agg(c.counter, c.amount + (
         select coalesce(sum(d.amount), 0) from usage_deltas d
         where d.org_id = c.org_id and d.counter = c.counter 
           and d.at >= ${period.period_start} and d.at < ${period.period_end})) as amounts
     from usage_counters c
     where c.period_start = ${period.period_start} and c.org_id in (${organizationIds})
       and not exists (select from usage_events e
         where e.org_id = c.org_id and e.kind = 'period_closed' and e.data ->> 'period_start' = ${period.period_start})
     group by c.org_id`,
  );
  for (const { organizationId, amounts } of open)
    await em.execute(
      sql`insert into usage_events (id, org_id, kind, counter, data, actor, at)
       values (${newId('usageEvent')}, ${organizationId}, 'period_closed', null, ${JSON.stringify({ ...period, amounts })}::jsonb, 'system', ${now.toISOString()})
       on conflict do nothing`,
    );
}
