import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { stopNotification } from './notification-sending.service.ts';

const BATCH_SIZE = 200;
const RESTORED_ERROR =
  'The database was restored from a backup, and the email may have been sent since the backup. It is not sent again.';

/** Marks the service's own emails that were pending in the backup as failed. Returns their number. */
export async function reconcileRestoredNotifications(
  database: Database,
  createdBefore: Date,
): Promise<number> {
  for (let stopped = 0; ; ) {
    const rows = await database.db
      .selectFrom('notifications')
      .select('id')
      .where('status', '=', anyOf(['pending', 'sending'] as const))
      .where('created_at', '<', createdBefore)
      .orderBy('id')
      .limit(BATCH_SIZE)
      .execute();
    for (const { id } of rows) await stopNotification(database, id, RESTORED_ERROR);
    stopped += rows.length;
    if (rows.length < BATCH_SIZE) return stopped;
  }
}
