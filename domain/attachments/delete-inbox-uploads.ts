import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { forgetResponses } from '../../platform/idempotency/forget-responses.ts';

/** Deletes files of an inbox that no message or draft has used. Returns the number of deleted files. */
export function deleteInboxUploads(database: Database, inboxId: string, batchSize: number): Promise<number> {
  return database.systemTransaction(async ({ em }) => {
    const deleted = await em.execute<{ id: string }[]>(
      sql`delete from attachments where id in (
         select id from attachments
         where inbox_id = ${inboxId} and message_id is null and draft_id is null limit ${batchSize})
       returning id`,
    );
    await forgetResponses(
      em,
      deleted.map(({ id }) => id),
    );
    return deleted.length;
  });
}
