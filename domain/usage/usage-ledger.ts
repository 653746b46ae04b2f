import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../platform/ids.ts';
import { type Page, type PageRequest, pageOf } from '../../platform/pagination.ts';
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

/** Adds a ledger entry in the transaction of the change it records. */
export function recordUsageEvent(
  em: EntityManager,
  entry: Omit<UsageEvent, 'id' | 'counter'> & Partial<Pick<UsageEvent, 'counter'>>,
): void {
  em.persist(em.create(UsageEventEntity, { counter: null, ...entry, id: newId('usageEvent') }));
}

const SETTLED_AFTER = '5 minutes';

const EVENTS = `select id, kind, counter, data, actor, at as "time", at from usage_events where org_id = ?`;
// Leaves out the current hour, and one that has just ended: transactions that began within it and deltas that are not
// applied yet may still change its sum.
const HOURS = `select ('hour/' || counter || '/' || extract(epoch from hour)::bigint) collate "C" as id, 'hourly_sum' as kind,
    counter, jsonb_build_object('amount', amount, 'hour', to_char(hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24":00:00.000Z"'))
      as data, 'system' as actor, hour as "time", hour + interval '1 hour' as at
  from usage_hours where org_id = ? and hour < date_trunc('hour', now() - interval '${SETTLED_AFTER}', 'UTC')`;

/** Returns one page of an organization's ledger. */
export async function listLedgerEntries(
  em: EntityManager,
  organizationId: string,
  { kind, page }: { kind: LedgerKind | undefined; page: PageRequest },
): Promise<Page<LedgerEntry>> {
  const { limit, order } = page;
  const [at, id] = page.after ?? [];
  const [branches, values]: [string[], unknown[]] = [[], []];
  // Each branch is ordered by its own time column, so that it can walk an index instead of sorting all rows.
  const add = (sql: string, cursorTime: string, ...further: unknown[]) => {
    const afterCursor =
      at === undefined ? '' : `where ("time", id) ${order === 'asc' ? '>' : '<'} (${cursorTime}, ?)`;
    branches.push(
      `(select * from (${sql}) as entries ${afterCursor} order by "time" ${order}, id ${order} limit ${limit + 1})`,
    );
    values.push(organizationId, ...further, ...(at === undefined ? [] : [at, id]));
  };
  if (kind === undefined || kind === 'hourly_sum') add(HOURS, `?::timestamptz - interval '1 hour'`);
  if (kind === undefined) add(EVENTS, '?::timestamptz');
  else if (kind !== 'hourly_sum') add(`${EVENTS} and kind = ?`, '?::timestamptz', kind);
  const rows = await em.execute<(Omit<LedgerEntry, 'at'> & { at: string | Date })[]>(
    `select id, kind, counter, data, actor, at from (${branches.join(' union all ')}) as ledger order by at ${order}, id ${order} limit ${limit + 1}`,
    values,
  );
  const entries = rows.map((row) => ({ ...row, at: new Date(row.at) }));
  return pageOf(entries, limit, (entry) => [entry.at.toISOString(), entry.id]);
}
