import { sql } from 'kysely';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import type { LimitedResource } from './counters.ts';
import { USAGE_EVENT_KINDS, type UsageEvent, type UsageEventKind } from './usage.entity.ts';

export const LEDGER_KINDS = [...USAGE_EVENT_KINDS, 'hourly_sum'] as const;
export type LedgerKind = (typeof LEDGER_KINDS)[number];

export interface LedgerEntry {
  id: string;
  kind: LedgerKind;
  counter: LimitedResource | null;
  data: Record<string, unknown>;
  actor: string;
  /** For an hourly sum: the end of its hour. */
  at: Date;
}

/** Adds a ledger entry in the transaction of the change it records. Returns its id. */
export async function recordUsageEvent(
  db: Db,
  {
    organizationId,
    counter = null,
    data,
    ...entry
  }: Omit<UsageEvent, 'id' | 'counter'> & Partial<Pick<UsageEvent, 'counter'>>,
): Promise<string> {
  const id = newId('usageEvent');
  await db
    .insertInto('usage_events')
    .values({ id, org_id: organizationId, counter, data: json(data), ...entry })
    .execute();
  return id;
}

export interface LedgerQuery {
  kind: LedgerKind | undefined;
  page: PageRequest;
}

/** Returns one page of an organization's ledger. */
export async function listLedgerEntries(
  db: Db,
  organizationId: string,
  { kind, page }: LedgerQuery,
): Promise<Page<LedgerEntry>> {
  const { limit, order } = page;
  // Each part is ordered by its own time column, so that it can walk an index instead of sorting all rows.
  const hours = db.selectFrom(selectHours(db, organizationId, page).as('hours')).selectAll();
  const events = db.selectFrom(selectEvents(db, organizationId, { kind, page }).as('events')).selectAll();
  const both = kind === undefined ? hours.unionAll(events) : kind === 'hourly_sum' ? hours : events;
  const rows = await db
    .selectFrom(both.as('ledger'))
    .selectAll()
    .orderBy('at', order)
    .orderBy('id', order)
    .limit(limit + 1)
    .execute();
  return toPage(rows, limit, ({ at, id }) => [at.toISOString(), id]);
}

function selectEvents(db: Db, organizationId: string, { kind, page }: LedgerQuery) {
  const { limit, order, after: [at, id] = [] } = page;
  return db
    .selectFrom('usage_events')
    .select(['id', 'kind', 'counter', 'data', 'actor', 'at'])
    .where('org_id', '=', organizationId)
    .$if(kind !== undefined, (query) => query.where('kind', '=', kind as UsageEventKind))
    .$if(at !== undefined, (query) =>
      query.where(sql<boolean>`(at, id) ${order === 'asc' ? sql`>` : sql`<`} (${at}::timestamptz, ${id})`),
    )
    .orderBy('at', order)
    .orderBy('id', order)
    .limit(limit + 1)
    .$castTo<LedgerEntry>();
}

const SETTLED_AFTER = '5 minutes';

/**
 * Leaves out the current hour and one that has just ended, because open transactions and pending deltas may still change its
 * sum.
 */
function selectHours(db: Db, organizationId: string, { limit, order, after: [at, id] = [] }: PageRequest) {
  const hours = db
    .selectFrom('usage_hours')
    .select([
      sql<string>`('hour/' || counter || '/' || extract(epoch from hour)::bigint) collate "C"`.as('id'),
      'counter',
      'hour',
      'amount',
    ])
    .where('org_id', '=', organizationId)
    .where('hour', '<', sql<Date>`date_trunc('hour', now() - ${SETTLED_AFTER}::interval, 'UTC')`);
  return db
    .selectFrom(hours.as('entries'))
    .select([
      'id',
      sql<string>`'hourly_sum'`.as('kind'),
      'counter',
      sql`jsonb_build_object('amount', amount, 'hour', to_char(hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24":00:00.000Z"'))`.as(
        'data',
      ),
      sql<string>`'system'`.as('actor'),
      sql<Date>`hour + interval '1 hour'`.as('at'),
    ])
    .$if(at !== undefined, (query) =>
      query.where(
        sql<boolean>`(hour, id) ${order === 'asc' ? sql`>` : sql`<`} (${at}::timestamptz - interval '1 hour', ${id})`,
      ),
    )
    .orderBy('hour', order)
    .orderBy('id', order)
    .limit(limit + 1)
    .$castTo<LedgerEntry>();
}
