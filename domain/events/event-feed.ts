import type { EntityManager } from '@mikro-orm/postgresql';
import { lowestIdAt } from '../../platform/ids.ts';
import type { Scope } from '../identity/scope.ts';
import { type Event, EventEntity } from './event.entity.ts';
import type { EventType } from './event-types.ts';

/**
 * A place in the order of events: behind some, before all others. As text it compares as the order does (by code
 * units), and it stays good for as long as the database's cluster lives.
 */
export type FeedPosition = string & { readonly feedPosition: true };

export type FeedScope = Pick<Scope, 'organizationId' | 'environmentId' | 'inboxId'>;

export interface FeedQuery {
  /** Events behind it only; in descending order, those before it. Empty: from that order's beginning. */
  after?: FeedPosition | undefined;
  /** Ascending unless said otherwise. */
  order?: 'asc' | 'desc' | undefined;
  types?: readonly EventType[] | undefined;
  /** Only events of these inboxes; none of the organization as a whole. */
  inboxIds?: readonly string[] | undefined;
  /** Recorded at or after this time. */
  since?: Date | undefined;
  /** Recorded before this time. */
  until?: Date | undefined;
  limit: number;
  /** No event more once those before it have so many bytes, so that large ones make short pages. Empty: no bound. */
  maxBytes?: number | undefined;
}

export interface FeedEvents {
  events: Event[];
  /** There are more within the limit, beyond `maxBytes`. */
  truncated: boolean;
}

/**
 * Events in the order of their commits, as near as a reader needs it: by the transaction that recorded them, then by
 * id. An event shows once no transaction older than its own is open any more, so that none ever appears behind a place
 * that was read past; while one is open (it writes, anywhere in the cluster) younger events wait for it.
 *
 * The events are those of the scope's environment, and those of the organization as a whole, whichever environment
 * they carry: the same its endpoints hear of. A credential bound to an inbox sees that inbox's.
 */
export async function readEvents(em: EntityManager, scope: FeedScope, query: FeedQuery): Promise<FeedEvents> {
  const direction = query.order ?? 'asc';
  const { sql, values } = buildConditions(query, direction);
  const order = `order by transaction_id ${direction}, id ${direction} limit ?`;
  const branches = buildBranches(scope, query.inboxIds);
  // Each branch is one walk along an index, however many events there are.
  const page = `select * from (${branches
    .map((branch) => `(select * from events where ${branch.sql} and ${sql} ${order})`)
    .join(' union all ')}) found ${order}`;
  const pageValues = [
    ...branches.flatMap((branch) => [...branch.values, ...values, query.limit]),
    query.limit,
  ];
  const statement =
    query.maxBytes === undefined
      ? { sql: page, values: pageValues }
      : limitBytes({ sql: page, values: pageValues }, direction, query.maxBytes);
  const rows = await em.execute<(object & { more?: boolean })[]>(statement.sql, statement.values);
  const truncated = rows.at(-1)?.more ?? false;
  return { events: rows.map(({ more: _, ...row }) => em.map(EventEntity, row)), truncated };
}

/** PostgreSQL sizes the events up, so that what the page has no room for never leaves it. */
function limitBytes(page: Condition, direction: 'asc' | 'desc', maxBytes: number): Condition {
  const place = `transaction_id ${direction}, id ${direction}`;
  return {
    sql: `select * from (
        select page.*, lead(true, 1, false) over (order by ${place}) as more,
          coalesce(sum(octet_length(data::text)) over (
            order by ${place} rows between unbounded preceding and 1 preceding), 0) as bytes_before
        from (${page.sql}) page) sized
      where bytes_before < ? order by ${place}`,
    values: [...page.values, maxBytes],
  };
}

/** Where reading has to begin to hear of all that shows from now on. */
export async function getFeedEnd(em: EntityManager): Promise<FeedPosition> {
  const [row] = await em.execute<{ next: string }[]>(
    'select pg_snapshot_xmin(pg_current_snapshot())::text as next',
  );
  return toPosition(row?.next ?? '0', '');
}

/** Before every event there is. */
export const FEED_START = toPosition('0', '');

export function positionOf({ transactionId, id }: Pick<Event, 'transactionId' | 'id'>): FeedPosition {
  return toPosition(transactionId, id);
}

/** @returns nothing where the text is no position. */
export function parsePosition(text: string): FeedPosition | undefined {
  return POSITION_PATTERN.test(text) ? (text as FeedPosition) : undefined;
}

/** 64 bits have up to 20 digits; no cluster will ever need the last of them. No id: nothing was read yet. */
const POSITION_PATTERN = /^0\d{19}\.[0-9a-z_]{0,64}$/;

function toPosition(transactionId: string, id: string): FeedPosition {
  return `${transactionId.padStart(20, '0')}.${id}` as FeedPosition;
}

interface Condition {
  sql: string;
  values: unknown[];
}

function buildBranches(scope: FeedScope, inboxIds: readonly string[] | undefined): Condition[] {
  const { organizationId, environmentId, inboxId } = scope;
  const own = { sql: 'org_id = ? and env_id = ?', values: [organizationId, environmentId] };
  const wanted = inboxIds?.filter((id) => inboxId === undefined || id === inboxId) ?? (inboxId && [inboxId]);
  if (wanted) {
    const inboxes = inList('inbox_id', wanted);
    return [{ sql: `${own.sql} and ${inboxes.sql}`, values: [...own.values, ...inboxes.values] }];
  }
  return [
    own,
    { sql: 'org_id = ? and inbox_id is null and env_id <> ?', values: [organizationId, environmentId] },
  ];
}

function inList(column: string, values: readonly string[]): Condition {
  if (values.length === 0) return { sql: 'false', values: [] };
  return { sql: `${column} in (${values.map(() => '?').join()})`, values: [...values] };
}

/** Ids are made just before their row's time is taken. */
const ID_BEFORE_TIME_MS = 1_000;

function buildConditions({ after, types, since, until }: FeedQuery, direction: 'asc' | 'desc'): Condition {
  const conditions: string[] = ['not test', 'transaction_id < pg_snapshot_xmin(pg_current_snapshot())'];
  const values: unknown[] = [];
  const add = (sql: string, ...given: unknown[]) => {
    conditions.push(sql);
    values.push(...given);
  };
  if (after !== undefined) {
    const [transactionId = '', id] = after.split('.');
    add(
      `(transaction_id, id) ${direction === 'asc' ? '>' : '<'} (?::xid8, ?)`,
      String(BigInt(transactionId)),
      id,
    );
  }
  if (types) {
    const wanted = inList('type', types);
    add(wanted.sql, ...wanted.values);
  }
  if (since)
    add(
      'created_at >= ? and id >= ?',
      since,
      lowestIdAt('event', new Date(since.getTime() - ID_BEFORE_TIME_MS)),
    );
  if (until) add('created_at < ? and id < ?', until, lowestIdAt('event', until));
  return { sql: conditions.join(' and '), values };
}
