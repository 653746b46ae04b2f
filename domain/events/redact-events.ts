import { type Expression, type SqlBool, sql } from 'kysely';
import { anyLocked, anyOf } from '../../platform/database/any-of.ts';
import type { JsonParameter } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Event } from './event.entity.ts';
import type { EventData } from './event-types.ts';

/** Fields with a fixed set of values: they reveal nothing about the content, and receivers rely on them. */
const KEPT_WORDS = ['bounce_type', 'bounce_sub_type', 'rejection_reason', 'decision'];
/** Ids, including those of people, and times. */
const KEPT_NAMES = '_(id|by|at)$';

/**
 * SQL: `data` without content. Strings are empty and arrays have no elements; ids, times, numbers and values of a fixed
 * set stay, so that every field keeps its type.
 */
const REDACTED_DATA = sql<JsonParameter<EventData>>`(
  select coalesce(jsonb_object_agg(key, case
    when key ~ ${KEPT_NAMES} or key = any(${KEPT_WORDS}) then value
    when jsonb_typeof(value) = 'string' then '""'
    when jsonb_typeof(value) = 'array' then '[]'
    when jsonb_typeof(value) = 'object' then '{}'
    else value end), '{}')
  from jsonb_each(data))`;

/**
 * Removes the content of events about messages and drafts that are being deleted. The caller has locked their rows, so that
 * no transaction that records another event about them is open.
 *
 * @returns the ids of the events.
 */
export function redactEventsAbout(db: Db, ids: readonly string[]): Promise<string[]> {
  return redact(db, sql`(message_id = ${anyOf(ids)} or about_id = ${anyOf(ids)})`);
}

/** Where the redaction of an inbox continues, in the order of its index. */
export type InboxEventPosition = Pick<Event, 'transactionId' | 'id'>;
export const FIRST_EVENT: InboxEventPosition = { transactionId: '0', id: '' };

/**
 * Removes the content of the next events of an inbox.
 *
 * @returns the ids of the events, and the position after them; null at the end.
 */
export async function redactEventsOfInbox(
  db: Db,
  inboxId: string,
  { after, limit }: { after: InboxEventPosition; limit: number },
): Promise<{ ids: string[]; next: InboxEventPosition | null }> {
  const page = await db
    .selectFrom('events')
    .select(['id', sql<string>`transaction_id::text`.as('transactionId'), 'redacted'])
    .where('inbox_id', '=', inboxId)
    .where(sql<SqlBool>`(transaction_id, id) > (${after.transactionId}::xid8, ${after.id})`)
    .orderBy('transaction_id')
    .orderBy('id')
    .limit(limit)
    .execute();
  const open = page.filter(({ redacted }) => !redacted).map(({ id }) => id);
  const ids = open.length === 0 ? [] : await redact(db, sql`id = ${anyOf(open)}`);
  return { ids, next: page.length < limit ? null : (page.at(-1) ?? null) };
}

async function redact(db: Db, where: Expression<SqlBool>): Promise<string[]> {
  const rows = await db
    .updateTable('events')
    .set({ data: REDACTED_DATA, redacted: true })
    .where(
      'id',
      '=',
      anyLocked(
        db
          .selectFrom('events')
          .select('id')
          .where(where)
          .where('redacted', '=', false)
          .orderBy('id')
          .forNoKeyUpdate(),
      ),
    )
    .returning('id')
    .execute();
  return rows.map(({ id }) => id);
}
