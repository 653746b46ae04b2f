import { type Expression, type SqlBool, sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Db } from '../../platform/database/tables.ts';
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
  events: Event[];
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
export async function readEvents(db: Db, scope: FeedScope, query: FeedQuery): Promise<FeedEvents> {
  const { order = 'asc', limit, maxBytes = UNLIMITED } = query;
  const conditions = buildConditions(query, order);
  // Each branch is one index scan, regardless of the number of events.
  const branches = buildBranches(scope, query.inboxIds).map((branch) =>
    db
      .selectFrom(
        db
          .selectFrom('events')
          .selectAll()
          .where((eb) => eb.and([branch, ...conditions]))
          .orderBy('transaction_id', order)
          .orderBy('id', order)
          .limit(limit)
          .as('branch'),
      )
      .selectAll(),
  );
  const page = db
    .selectFrom(branches.reduce((found, branch) => found.unionAll(branch)).as('found'))
    .selectAll()
    .orderBy('transaction_id', order)
    .orderBy('id', order)
    .limit(limit);
  // Events beyond the limit are neither read nor transferred: a page of large events costs no more than what it returns.
  const window = sql`order by transaction_id ${DIRECTIONS[order]}, id ${DIRECTIONS[order]}`;
  const sized = db
    .selectFrom(page.as('page'))
    .selectAll()
    .select([
      sql<boolean>`lead(true, 1, false) over (${window})`.as('more'),
      sql<number>`coalesce(sum(data_bytes) over (
        ${window} rows between unbounded preceding and 1 preceding), 0)`.as('bytes_before'),
    ]);
  const rows = await db
    .selectFrom(sized.as('sized'))
    .select(columnsOf(EventEntity, { from: 'sized' }))
    .select('more')
    .where('bytes_before', '<', maxBytes)
    .orderBy('transaction_id', order)
    .orderBy('id', order)
    .execute();
  return { events: rows.map(({ more: _, ...event }) => event), truncated: rows.at(-1)?.more ?? false };
}

const UNLIMITED = Number.MAX_SAFE_INTEGER;
const DIRECTIONS = { asc: sql`asc`, desc: sql`desc` };

/** The position after which every event that becomes visible from now on will appear. */
export async function getFeedEnd(db: Db): Promise<FeedPosition> {
  const row = await db
    .selectNoFrom(sql<string>`pg_snapshot_xmin(pg_current_snapshot())::text`.as('next'))
    .executeTakeFirst();
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

function buildBranches(
  { organizationId, environmentId, inboxId }: FeedScope,
  inboxIds: readonly string[] | undefined,
): Expression<SqlBool>[] {
  const own = sql<SqlBool>`org_id = ${organizationId} and env_id = ${environmentId}`;
  const visible = inboxIds?.filter((id) => inboxId === undefined || id === inboxId) ?? (inboxId && [inboxId]);
  if (visible) return [sql<SqlBool>`${own} and inbox_id = ${anyOf(visible)}`];
  return [own, sql<SqlBool>`org_id = ${organizationId} and inbox_id is null and env_id <> ${environmentId}`];
}

/** An id is generated shortly before its row's `created_at` is set. */
const MAX_ID_LEAD_MS = 1_000;

/** A lower bound for the ids of events recorded at or after `since`. */
export function lowestEventIdSince(since: Date): string {
  return lowestIdAt('event', new Date(Math.max(0, since.getTime() - MAX_ID_LEAD_MS)));
}

function buildConditions(
  { after, types, messageId, since, until }: FeedQuery,
  order: 'asc' | 'desc',
): Expression<SqlBool>[] {
  const conditions = [
    sql<SqlBool>`not test`,
    sql<SqlBool>`transaction_id < pg_snapshot_xmin(pg_current_snapshot())`,
  ];
  if (after !== undefined) {
    const [transactionId = '', id] = after.split('.');
    const comparison = order === 'asc' ? sql`>` : sql`<`;
    conditions.push(
      sql<SqlBool>`(transaction_id, id) ${comparison} (${String(BigInt(transactionId))}::xid8, ${id})`,
    );
  }
  if (types) conditions.push(sql<SqlBool>`type = ${anyOf(types)}`);
  if (messageId !== undefined) conditions.push(sql<SqlBool>`message_id = ${messageId}`);
  if (since) conditions.push(sql<SqlBool>`created_at >= ${since} and id >= ${lowestEventIdSince(since)}`);
  if (until) conditions.push(sql<SqlBool>`created_at < ${until} and id < ${lowestIdAt('event', until)}`);
  return conditions;
}
