import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Sql } from '../../platform/database/sql.ts';
import type { Event } from './event.entity.ts';

/** Fields of a closed set of words: they tell nothing of the content, and receivers rely on the words. */
const KEPT_WORDS = ['bounce_type', 'bounce_sub_type', 'rejection_reason', 'decision'];
/** Ids, of people too, and times. */
const KEPT_NAMES = '_(id|by|at)$';

/**
 * SQL: `data` without content. Strings are empty and arrays have no elements; ids, times, numbers and the words of a closed
 * set stay, so that every field keeps its type.
 */
const REDACTED_DATA = sql`(
  select coalesce(jsonb_object_agg(key, case
    when key ~ ${KEPT_NAMES} or key in (${KEPT_WORDS}) then value
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
export function redactEventsAbout(em: EntityManager, ids: readonly string[]): Promise<string[]> {
  return redact(em, sql`(message_id in (${ids}) or about_id in (${ids}))`);
}

/** Where the redaction of an inbox continues, in the order of its index. */
export type InboxEventPosition = Pick<Event, 'transactionId' | 'id'>;
export const FIRST_EVENT: InboxEventPosition = { transactionId: '0', id: '' };

/**
 * Likewise for the next events of an inbox.
 *
 * @returns the ids of the events, and the position after them; null at the end.
 */
export async function redactEventsOfInbox(
  em: EntityManager,
  inboxId: string,
  { after, limit }: { after: InboxEventPosition; limit: number },
): Promise<{ ids: string[]; next: InboxEventPosition | null }> {
  const page = await em.execute<(InboxEventPosition & Pick<Event, 'redacted'>)[]>(sql`
    select id, transaction_id::text as "transactionId", redacted from events
    where inbox_id = ${inboxId} and (transaction_id, id) > (${after.transactionId}::xid8, ${after.id})
    order by transaction_id, id limit ${limit}`);
  const open = page.filter(({ redacted }) => !redacted).map(({ id }) => id);
  const ids = open.length === 0 ? [] : await redact(em, sql`id in (${open})`);
  return { ids, next: page.length < limit ? null : (page.at(-1) ?? null) };
}

async function redact(em: EntityManager, where: Sql): Promise<string[]> {
  const rows = await em.execute<{ id: string }[]>(sql`
    update events set data = ${REDACTED_DATA}, redacted = true
    where id = any(array(select id from events where ${where} and not redacted order by id for no key update))
    returning id`);
  return rows.map(({ id }) => id);
}
