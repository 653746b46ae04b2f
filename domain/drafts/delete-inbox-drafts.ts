import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { forgetResponses } from '../../platform/idempotency/forget-responses.ts';
import type { EventService } from '../events/event.service.ts';
import { DraftEntity } from './draft.entity.ts';

/** Deletes drafts of an inbox, with what is kept of them elsewhere. Returns the number of deleted drafts. */
export function deleteInboxDrafts(
  database: Database,
  events: Pick<EventService, 'redact'>,
  inboxId: string,
  batchSize: number,
): Promise<number> {
  return database.systemTransaction(async (transaction) => {
    const { em } = transaction;
    const rows = await em.execute<{ id: string }[]>(
      sql`select id from drafts where inbox_id = ${inboxId} order by id limit ${batchSize} for update`,
    );
    const ids = rows.map(({ id }) => id);
    if (ids.length === 0) return 0;
    await events.redact(transaction, ids);
    await forgetResponses(em, ids);
    await em.nativeDelete(DraftEntity, { id: { $in: ids } });
    return ids.length;
  });
}
