import { raw, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { RowReader } from '../../platform/database/find-rows.ts';
import { joinSql, type Sql } from '../../platform/database/sql.ts';
import { newId } from '../../platform/ids.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import type { LimitedResource } from './counters.ts';
import { USAGE_EVENT_KINDS, type UsageEvent, UsageEventEntity } from './usage-event.entity.ts';

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
export function recordUsageEvent(
  em: EntityManager,
  entry: Omit<UsageEvent, 'id' | 'counter'> & Partial<Pick<UsageEvent, 'counter'>>,
): string {
  const id = newId('usageEvent');
  em.persist(em.create(UsageEventEntity, { counter: null, ...entry, id }));
  return id;
}

const SETTLED_AFTER = '5 minutes';

const eventsSql = (organizationId: string, kind: LedgerKind | undefined) =>
  sql`select id, kind, counter, data, actor, at as "time", at from usage_events
    where org_id = ${organizationId} and ${kind === undefined ? sql`true` : sql`kind = ${kind}`}`;
// Leaves out the current hour, and one that has just ended: transactions that began within it and deltas that are not
// applied yet may still change its sum.
const hoursSql = (
  organizationId: string,
) => sql`select ('hour/' || counter || '/' || extract(epoch from hour)::bigint) collate "C" as id, 'hourly_sum' as kind,
    counter, jsonb_build_object('amount', amount, 'hour', to_char(hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24":00:00.000Z"'))
      as data, 'system' as actor, hour as "time", hour + interval '1 hour' as at
  from usage_hours
  where org_id = ${organizationId} and hour < date_trunc('hour', now() - ${SETTLED_AFTER}::interval, 'UTC')`;

/** Returns one page of an organization's ledger. */
export async function listLedgerEntries(
  reader: RowReader,
  organizationId: string,
  { kind, page }: { kind: LedgerKind | undefined; page: PageRequest },
): Promise<Page<LedgerEntry>> {
  const { limit, order } = page;
  const [at, id] = page.after ?? [];
  const direction = raw(order);
  const branches: Sql[] = [];
  // Each branch is ordered by its own time column, so that it can walk an index instead of sorting all rows.
  const add = (entries: Sql, cursorTime: Sql) => {
    const beyond = raw(order === 'asc' ? '>' : '<');
    const afterCursor = at === undefined ? sql`` : sql`where ("time", id) ${beyond} (${cursorTime}, ${id})`;
    branches.push(
      sql`(select * from (${entries}) as entries ${afterCursor}
        order by "time" ${direction}, id ${direction} limit ${limit + 1})`,
    );
  };
  if (kind === undefined || kind === 'hourly_sum')
    add(hoursSql(organizationId), sql`${at}::timestamptz - interval '1 hour'`);
  if (kind !== 'hourly_sum') add(eventsSql(organizationId, kind), sql`${at}::timestamptz`);
  const rows = await reader.execute<(Omit<LedgerEntry, 'at'> & { at: string | Date })[]>(
    sql`select id, kind, counter, data, actor, at from (${joinSql(branches, ' union all ')}) as ledger
      order by at ${direction}, id ${direction} limit ${limit + 1}`,
  );
  const entries = rows.map((row) => ({ ...row, at: new Date(row.at) }));
  return toPage(entries, limit, (entry) => [entry.at.toISOString(), entry.id]);
}
