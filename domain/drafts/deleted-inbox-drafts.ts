import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { deleteStoredResponses } from '../../platform/idempotency/delete-stored-responses.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { EventService } from '../events/event.service.ts';
import { DraftEntity } from './draft.entity.ts';
import { voidApproval } from './draft-approval.ts';
import { signalUnscheduled } from './draft-schedule.ts';

/** Limits the work in the transaction that deletes the inbox. Any further scheduled drafts fail when they are due. */
const MAX_DRAFTS = 1_000;

/** Unschedules the drafts of an inbox that is being deleted, and voids the approvals that they wait for. */
export async function unscheduleDraftsOfInbox(
  transaction: Transaction,
  outbox: Outbox,
  inboxId: string,
): Promise<void> {
  const { db } = transaction;
  const drafts = await db
    .selectFrom('drafts')
    .select(columnsOf(DraftEntity))
    .where('inbox_id', '=', inboxId)
    .where('send_status', 'in', ['scheduled', 'pending_approval'])
    .limit(MAX_DRAFTS)
    .forUpdate()
    .execute();
  for (const draft of drafts) {
    voidApproval(transaction, outbox, draft);
    if (draft.sendStatus === 'scheduled') signalUnscheduled(transaction, outbox, draft);
  }
  await db
    .updateTable('drafts')
    .set({
      send_status: 'draft',
      send_at: null,
      send_error: 'The inbox was deleted.',
      updated_at: sql`now()`,
    })
    .where('id', '=', anyOf(drafts.map(({ id }) => id)))
    .execute();
}

/** Deletes drafts of an inbox and the copies of their content in other tables. Returns the number of deleted drafts. */
export function deleteInboxDrafts(
  database: Database,
  events: Pick<EventService, 'redact'>,
  inboxId: string,
  batchSize: number,
): Promise<number> {
  return database.systemTransaction(async (transaction) => {
    const { db } = transaction;
    const rows = await db
      .selectFrom('drafts')
      .select('id')
      .where('inbox_id', '=', inboxId)
      .orderBy('id')
      .limit(batchSize)
      .forUpdate()
      .execute();
    const ids = rows.map(({ id }) => id);
    if (ids.length === 0) return 0;
    await events.redact(transaction, ids);
    await deleteStoredResponses(db, ids);
    await db.deleteFrom('drafts').where('id', '=', anyOf(ids)).execute();
    return ids.length;
  });
}
