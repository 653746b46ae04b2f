import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
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
