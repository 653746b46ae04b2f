import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../platform/ids.ts';
import { type Page, type PageRequest, pageOf } from '../../platform/pagination.ts';
import type { Limited } from './counters.ts';
import { USAGE_EVENT_KINDS, type UsageEvent, UsageEventEntity } from './usage-event.entity.ts';

export const LEDGER_KINDS = [...USAGE_EVENT_KINDS, 'hourly_sum'] as const;
export type LedgerKind = (typeof LEDGER_KINDS)[number];

export interface LedgerEntry {
  id: string;
  kind: LedgerKind;
  counter: Limited | null;
  data: Record<string, unknown>;
  actor: string;
  /** Of an hourly sum: when its hour was over. */
  at: Date;
}

/** Writes an entry of the ledger, in the transaction of what it tells of. */
export function recordUsageEvent(
  em: EntityManager,
  entry: Omit<UsageEvent, 'id' | 'counter'> & Partial<Pick<UsageEvent, 'counter'>>,
): void {
  em.persist(em.create(UsageEventEntity, { counter: null, ...entry, id: newId('usageEvent') }));
}

const SETTLED_AFTER = '5 minutes';

const EVENTS = `select id, kind, counter, data, actor, at as "time", at from usage_events where org_id = ?`;
// An hour that is not over has no sum yet; one that has just ended may still get some, by those who began within it and
// by the next fold.
const HOURS = `select ('hour/' || counter || '/' || extract(epoch from hour)::bigint) collate "C" as id, 'hourly_sum' as kind,
    counter, jsonb_build_object('amount', amount, 'hour', to_char(hour at time zone 'UTC', 'YYYY-MM-DD"T"HH24":00:00.000Z"'))
      as data, 'system' as actor, hour as "time", hour + interval '1 hour' as at
  from usage_hours where org_id = ? and hour < date_trunc('hour', now() - interval '${SETTLED_AFTER}', 'UTC')`;

/** The ledger of an organization, a page of it. */
export async function listLedger(
  em: EntityManager,
  organizationId: string,
  { kind, page }: { kind: LedgerKind | undefined; page: PageRequest },
): Promise<Page<LedgerEntry>> {
  const { limit, order } = page;
  const [at, id] = page.after ?? [];
  const [branches, values]: [string[], unknown[]] = [[], []];
  // By the column itself, so that each branch is a step along an index and not a sort of all there is.
  const add = (sql: string, cursorTime: string, ...further: unknown[]) => {
    const behind =
      at === undefined ? '' : `where ("time", id) ${order === 'asc' ? '>' : '<'} (${cursorTime}, ?)`;
    branches.push(
      `(select * from (${sql}) as entries ${behind} order by "time" ${order}, id ${order} limit ${limit + 1})`,
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
