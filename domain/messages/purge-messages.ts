import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { IN_FLIGHT_STATUSES } from './deletion.service.ts';
import { isEmptyThread } from './empty-thread.ts';
import { type EventRedaction, eraseMessageCopies } from './erase-message-copies.ts';

/**
 * Deletes messages of an inbox and the copies of their content in other tables. Keeps messages whose outcome at the
 * relay is still open. Returns the number of deleted messages.
 */
export function deleteInboxMessages(
  database: Database,
  events: EventRedaction,
  inboxId: string,
  batchSize: number,
): Promise<number> {
  return database.systemTransaction(async (transaction) => {
    const { db } = transaction;
    const messages = await db
      .selectFrom('messages')
      .select(['id', 'draft_id as draftId'])
      .where('inbox_id', '=', inboxId)
      .where('status', 'not in', IN_FLIGHT_STATUSES)
      .orderBy('id')
      .limit(batchSize)
      .forUpdate()
      .execute();
    if (messages.length === 0) return 0;
    await eraseMessageCopies(transaction, events, messages);
    const ids = messages.map(({ id }) => id);
    await db.deleteFrom('messages').where('id', '=', anyOf(ids)).execute();
    return messages.length;
  });
}

/** Deletes threads of an inbox that have no messages. Returns the number of deleted threads. */
export async function deleteInboxThreads(
  { db }: Database,
  inboxId: string,
  batchSize: number,
): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('threads')
    .where(
      'id',
      'in',
      db
        .selectFrom('threads')
        .select('id')
        .where('inbox_id', '=', inboxId)
        .where(isEmptyThread)
        .limit(batchSize),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}

export async function countInboxMessages({ db }: Database, inboxId: string): Promise<number> {
  const row = await db
    .selectFrom('messages')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('inbox_id', '=', inboxId)
    .executeTakeFirst();
  return row?.count ?? 0;
}

/**
 * Deletes messages of a purged organization in any status, with their receipts. Triggers release their stored objects.
 * Returns the number of deleted messages.
 */
export async function deleteOrganizationMessages(
  { db }: Database,
  organizationId: string,
  batchSize: number,
): Promise<number> {
  const row = await db
    .with('deleted', (cte) =>
      cte
        .deleteFrom('messages')
        .where('id', 'in', (eb) =>
          eb
            .selectFrom('messages')
            .select('id')
            .where('env_id', 'in', (environments) =>
              environments.selectFrom('environments').select('id').where('org_id', '=', organizationId),
            )
            .limit(batchSize),
        )
        .returning('id'),
    )
    .with('receipts', (cte) =>
      cte
        .deleteFrom('inbound_receipts')
        .where('id', 'in', (eb) =>
          eb.selectFrom('deleted').select(sql<string>`'rcp_' || substr(id, 5)`.as('receipt_id')),
        ),
    )
    .selectFrom('deleted')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirst();
  return row?.count ?? 0;
}
