import { sql } from 'kysely';
import { anyLocked } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { deleteStoredResponses } from '../../platform/idempotency/delete-stored-responses.ts';

const BATCH_SIZE = 500;

/**
 * Deletes uploads that no draft or message has used within 24 hours. A trigger registers their objects for deletion.
 * Returns the number of deleted uploads.
 */
export async function deleteUnusedUploads({ db }: Database): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('attachments')
    .where(
      'id',
      '=',
      anyLocked(
        db
          .selectFrom('attachments')
          .select('id')
          .where('message_id', 'is', null)
          .where('draft_id', 'is', null)
          .where('created_at', '<', sql<Date>`now() - interval '24 hours'`)
          .orderBy('created_at')
          .limit(BATCH_SIZE)
          .forUpdate()
          // An upload that is being attached is locked.
          .skipLocked(),
      ),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Deletes files of an inbox that no message or draft has used. Returns the number of deleted files. */
export function deleteInboxUploads(database: Database, inboxId: string, batchSize: number): Promise<number> {
  return database.systemTransaction(async ({ db }) => {
    const deleted = await db
      .deleteFrom('attachments')
      .where('id', 'in', (eb) =>
        eb
          .selectFrom('attachments')
          .select('id')
          .where('inbox_id', '=', inboxId)
          .where('message_id', 'is', null)
          .where('draft_id', 'is', null)
          .limit(batchSize),
      )
      .returning('id')
      .execute();
    await deleteStoredResponses(
      db,
      deleted.map(({ id }) => id),
    );
    return deleted.length;
  });
}
