import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';
import { IN_FLIGHT_STATUSES } from './deletion.service.ts';
import { type ForgetMessages, forgetMessages } from './forget-messages.ts';
import { type Message, MessageEntity } from './message.entity.ts';

/**
 * Deletes messages of an inbox, except those whose outcome at the relay is still open, with what is kept of them elsewhere.
 * Returns the number of deleted messages.
 */
export function deleteInboxMessages(
  database: Database,
  events: ForgetMessages,
  inboxId: string,
  batchSize: number,
): Promise<number> {
  return database.systemTransaction(async (transaction) => {
    const { em } = transaction;
    const messages = await em.execute<Pick<Message, 'id' | 'draftId'>[]>(
      sql`select id, draft_id as "draftId" from messages
       where inbox_id = ${inboxId} and status not in (${[...IN_FLIGHT_STATUSES]})
       order by id limit ${batchSize} for update`,
    );
    if (messages.length === 0) return 0;
    await forgetMessages(transaction, events, messages);
    await em.nativeDelete(MessageEntity, { id: { $in: messages.map(({ id }) => id) } });
    return messages.length;
  });
}

/** Deletes threads of an inbox that have no messages. Returns the number of deleted threads. */
export function deleteInboxThreads(database: Database, inboxId: string, batchSize: number): Promise<number> {
  return deleteRows(
    database,
    sql`delete from threads where id in (
       select id from threads t where inbox_id = ${inboxId}
         and not exists (select from messages m where m.thread_id = t.id)
         and not exists (select from threads a join messages m on m.thread_id = a.id where a.merged_into_id = t.id)
       limit ${batchSize})`,
  );
}

export function countInboxMessages(database: Database, inboxId: string): Promise<number> {
  return database.autocommit((em) => em.count(MessageEntity, { inboxId }));
}
