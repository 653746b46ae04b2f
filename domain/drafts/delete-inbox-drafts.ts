import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { forgetResponses } from '../../platform/idempotency/forget-responses.ts';
import type { EventService } from '../events/event.service.ts';

/** Deletes drafts of an inbox, with what is kept of them elsewhere. Returns the number of deleted drafts. */
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
    await forgetResponses(db, ids);
    await db.deleteFrom('drafts').where('id', '=', anyOf(ids)).execute();
    return ids.length;
  });
}
