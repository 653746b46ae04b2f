import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { lowestIdAt } from '../../platform/ids.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';

/**
 * Takes one message from the inbox's allowance of the UTC day, in one statement that serializes its senders. Nothing is
 * taken on a refusal, and a rollback returns it. The first message of a day is counted with those that the inbox sent
 * before the cap was set.
 */
export async function takeInboxAllowance(
  em: EntityManager,
  { id: inboxId, organizationId }: Pick<Inbox, 'id' | 'organizationId'>,
  cap: number,
  now = new Date(),
): Promise<'taken' | 'exceeded'> {
  const today = now.toISOString().slice(0, 10);
  const taken = await em.execute<object[]>(sql`
    with known as (
      select messages from inbox_daily_sends where inbox_id = ${inboxId} and day = ${today}::date),
    sent as (
      select case when exists (select from known) then 0 else (
        select count(*)::int from (
          select from messages
          where inbox_id = ${inboxId} and direction = 'outbound' and id >= ${lowestIdAt('message', new Date(today))}
          limit ${cap}) earlier) end + 1 as messages)
    insert into inbox_daily_sends as c (inbox_id, org_id, day, messages)
    select ${inboxId}, ${organizationId}, ${today}::date, sent.messages from sent where sent.messages <= ${cap}
    on conflict (inbox_id) do update
    set messages = case when c.day < excluded.day then excluded.messages else c.messages + 1 end,
      day = greatest(c.day, excluded.day)
    where c.day < excluded.day or c.messages < ${cap}
    returning 1`);
  return taken.length > 0 ? 'taken' : 'exceeded';
}

/** Returns a message that was taken in the same transaction but is refused for another reason. */
export async function returnInboxAllowance(em: EntityManager, inboxId: string): Promise<void> {
  await em.execute(sql`update inbox_daily_sends set messages = messages - 1 where inbox_id = ${inboxId}`);
}
