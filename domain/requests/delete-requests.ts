import type { Database } from '../../platform/database/database.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import { runInBatches } from '../../platform/run-in-batches.ts';

export const REQUEST_RETENTION_MS = 7 * 86_400_000;
const BATCH_SIZE = 5_000;
/** Of one sweep. */
const MAX_BATCHES = 100;

/**
 * Deletes calls after seven days. Ids begin with the time, so the oldest rows are the first of the primary key. Returns the
 * number of deleted rows.
 */
export function deleteExpiredRequests({ db }: Pick<Database, 'db'>, now = new Date()): Promise<number> {
  const end = lowestIdAt('request', new Date(now.getTime() - REQUEST_RETENTION_MS));
  const deleteBatch = async () => {
    const { numDeletedRows } = await db
      .deleteFrom('api_requests')
      .where('id', 'in', (eb) =>
        eb.selectFrom('api_requests').select('id').where('id', '<', end).orderBy('id').limit(BATCH_SIZE),
      )
      .executeTakeFirstOrThrow(() => new Error('PostgreSQL did not answer a deletion'));
    return Number(numDeletedRows);
  };
  return runInBatches(deleteBatch, { size: BATCH_SIZE, maxBatches: MAX_BATCHES });
}
