import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { roomWithin } from '../usage/effective-limit.ts';
import { readStandings } from '../usage/standings.ts';
import { RELEASE_BATCH } from './release-held-deliveries.ts';
import { startAnew } from './start-anew.ts';

/**
 * Starts what waited because the organization had used up its deliveries, oldest first, as much as there is room for and
 * at most {@link RELEASE_BATCH}. What a disabled endpoint has waiting stays.
 *
 * @returns how many were started.
 */
export async function releaseOverLimit(
  transaction: Transaction,
  outbox: Outbox,
  { organizationId, now }: { organizationId: string; now: Date },
): Promise<number> {
  const [room = 0] = await roomsOf(transaction.em, [organizationId], now);
  const most = Math.min(room, RELEASE_BATCH);
  if (most === 0) return 0;
  return startAnew(transaction, outbox, {
    // Materialized: a plan that asks the selection again for each row would go beyond its limit.
    sql: `with oldest as materialized (
        select h.id from webhook_deliveries h
        join webhook_endpoints w on w.id = h.endpoint_id and not w.disabled and w.deleted_at is null
        where h.org_id = ? and h.status = 'held' and h.held_for = 'usage_limit'
        order by h.id limit ? for update of h skip locked)
      select id from oldest`,
    values: [organizationId, most],
  });
}

async function roomsOf(em: EntityManager, organizationIds: string[], now: Date): Promise<number[]> {
  const standings = await readStandings(em, { organizationIds, counters: ['webhook_deliveries'], now });
  const roomOf = new Map(
    standings.map(({ organizationId, limit, current }) => [organizationId, roomWithin(limit, current)]),
  );
  // Null: nothing is refused.
  return organizationIds.map((id) => roomOf.get(id) ?? (roomOf.has(id) ? Number.POSITIVE_INFINITY : 0));
}

/** Organizations looked at in one statement. */
const PAGE = 200;

/** A step along the index for each organization, however much it has waiting. */
const WAITING = `with recursive waiting as (
    (select org_id from webhook_deliveries
     where status = 'held' and held_for = 'usage_limit' and org_id > ? order by org_id limit 1)
    union all
    select (select d.org_id from webhook_deliveries d
      where d.status = 'held' and d.held_for = 'usage_limit' and d.org_id > waiting.org_id
      order by d.org_id limit 1)
    from waiting where waiting.org_id is not null)
  select org_id as id from waiting where org_id is not null limit ${PAGE}`;

/** A sweep: a new month, an override that ended, more of a queue than one batch. One batch an organization. */
export async function releaseWithinLimits(
  database: Database,
  outbox: Outbox,
  now: () => Date = () => new Date(),
): Promise<number> {
  let released = 0;
  for (let after = ''; ; ) {
    const page = await database.statement<{ id: string }>(WAITING, [after]);
    const ids = page.map(({ id }) => id);
    const rooms = await database.autocommit((em) => roomsOf(em, ids, now()));
    for (const [index, organizationId] of ids.entries()) {
      if (!rooms[index]) continue;
      released += await database.systemTransaction((transaction) =>
        releaseOverLimit(transaction, outbox, { organizationId, now: now() }),
      );
    }
    after = ids.at(-1) ?? '';
    if (ids.length < PAGE) return released;
  }
}
