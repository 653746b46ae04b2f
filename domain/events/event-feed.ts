import { raw, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { queryRows, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { joinSql, type Sql } from '../../platform/database/sql.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import type { Scope } from '../identity/scope.ts';
import { type Event, EventEntity } from './event.entity.ts';
import type { EventType } from './event-types.ts';

/**
 * A position in the order of events. Positions compare as strings (by code units) in the order of events, and stay valid
 * for the lifetime of the database cluster.
 */
export type FeedPosition = string & { readonly feedPosition: true };

export type FeedScope = Pick<Scope, 'organizationId' | 'environmentId' | 'inboxId'>;

export interface FeedQuery {
  /** Only events after this position in the given direction. By default from the beginning. */
  after?: FeedPosition | undefined;
  /** Ascending by default. */
  order?: 'asc' | 'desc' | undefined;
  types?: readonly EventType[] | undefined;
  /** Only events of these inboxes; excludes organization-wide events. */
  inboxIds?: readonly string[] | undefined;
  /** Only events whose data names this message. */
  messageId?: string | undefined;
  /** Recorded at or after this time. */
  since?: Date | undefined;
  /** Recorded before this time. */
  until?: Date | undefined;
  limit: number;
  /** Ends the page once its events have this many bytes, so that large events make short pages. By default unlimited. */
  maxBytes?: number | undefined;
}

export interface FeedEvents {
  events: Row<Event>[];
  /** Whether `maxBytes` cut the page short: there are more events within `limit`. */
  truncated: boolean;
}

/**
 * Reads events in commit order, approximated by the transaction that recorded them and then by id. An event becomes
 * visible once no older transaction is open, so no event ever appears before a position that was already read. While an
 * older writing transaction is open anywhere in the cluster, newer events stay invisible.
 *
 * Includes the events of the scope's environment and organization-wide ones of any environment, as webhook endpoints
 * do. A credential bound to an inbox sees only the events of that inbox.
 */
export async function readEvents(reader: RowReader, scope: FeedScope, query: FeedQuery): Promise<FeedEvents> {
  const direction = query.order ?? 'asc';
  const conditions = joinSql(buildConditions(query, direction), ' and ');
  const order = sql`order by transaction_id ${raw(direction)}, id ${raw(direction)} limit ${query.limit}`;
  // Each branch is one index scan, regardless of the number of events.
  const branches = buildBranches(scope, query.inboxIds).map(
    (branch) => sql`(select * from events where ${branch} and ${conditions} ${order})`,
  );
  const page = sql`select * from (${joinSql(branches, ' union all ')}) found ${order}`;
  const rows = await queryRows<Event, { more?: boolean }>(reader, EventEntity, (columns) =>
    query.maxBytes === undefined
      ? sql`select ${columns} from (${page}) page`
      : limitBytes(columns, page, direction, query.maxBytes),
  );
  const truncated = rows.at(-1)?.more ?? false;
  return { events: rows.map(({ more: _, ...event }) => event), truncated };
}

/** Events beyond the limit are neither read nor transferred: a page of large events costs no more than what it returns. */
function limitBytes(columns: Sql, page: Sql, direction: 'asc' | 'desc', maxBytes: number): Sql {
  const order = raw(`transaction_id ${direction}, id ${direction}`);
  return sql`select ${columns}, more from (
      select page.*, lead(true, 1, false) over (order by ${order}) as more,
        coalesce(sum(data_bytes) over (
          order by ${order} rows between unbounded preceding and 1 preceding), 0) as bytes_before
      from (${page}) page) sized
    where bytes_before < ${maxBytes} order by ${order}`;
}

/** The position after which every event that becomes visible from now on will appear. */
export async function getFeedEnd(em: EntityManager): Promise<FeedPosition> {
  const [row] = await em.execute<{ next: string }[]>(
    sql`select pg_snapshot_xmin(pg_current_snapshot())::text as next`,
  );
  return toPosition(row?.next ?? '0', '');
}

/** The position before every event. */
export const FEED_START = toPosition('0', '');

export function positionOf({ transactionId, id }: Pick<Event, 'transactionId' | 'id'>): FeedPosition {
  return toPosition(transactionId, id);
}

/** @returns undefined if the text is not a position. */
export function parsePosition(text: string): FeedPosition | undefined {
  return POSITION_PATTERN.test(text) ? (text as FeedPosition) : undefined;
}

/** A 64-bit transaction id, zero-padded to 20 digits, and an event id; the id is empty before the first event. */
const POSITION_PATTERN = /^0\d{19}\.[0-9a-z_]{0,64}$/;

function toPosition(transactionId: string, id: string): FeedPosition {
  return `${transactionId.padStart(20, '0')}.${id}` as FeedPosition;
}

function buildBranches(scope: FeedScope, inboxIds: readonly string[] | undefined): Sql[] {
  const { organizationId, environmentId, inboxId } = scope;
  const own = sql`org_id = ${organizationId} and env_id = ${environmentId}`;
  const visible = inboxIds?.filter((id) => inboxId === undefined || id === inboxId) ?? (inboxId && [inboxId]);
  if (visible) return [sql`${own} and ${inList(sql`inbox_id`, visible)}`];
  return [own, sql`org_id = ${organizationId} and inbox_id is null and env_id <> ${environmentId}`];
}

function inList(column: Sql, values: readonly string[]): Sql {
  return values.length === 0 ? sql`false` : sql`${column} in (${values})`;
}

/** An id is generated shortly before its row's `created_at` is set. */
const MAX_ID_LEAD_MS = 1_000;

/** A lower bound for the ids of events recorded at or after `since`. */
export function lowestEventIdSince(since: Date): string {
  return lowestIdAt('event', new Date(Math.max(0, since.getTime() - MAX_ID_LEAD_MS)));
}

function buildConditions(
  { after, types, messageId, since, until }: FeedQuery,
  direction: 'asc' | 'desc',
): Sql[] {
  const conditions: Sql[] = [sql`not test`, sql`transaction_id < pg_snapshot_xmin(pg_current_snapshot())`];
  if (after !== undefined) {
    const [transactionId = '', id] = after.split('.');
    const comparison = raw(direction === 'asc' ? '>' : '<');
    conditions.push(sql`(transaction_id, id) ${comparison} (${String(BigInt(transactionId))}::xid8, ${id})`);
  }
  if (types) conditions.push(inList(sql`type`, types));
  if (messageId !== undefined) conditions.push(sql`message_id = ${messageId}`);
  if (since) {
    const lowestId = lowestEventIdSince(since);
    conditions.push(sql`created_at >= ${since} and id >= ${lowestId}`);
  }
  if (until) conditions.push(sql`created_at < ${until} and id < ${lowestIdAt('event', until)}`);
  return conditions;
}
