import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';

const RETENTION_DAYS = 30;
/** Maximum number of rows per sweep. */
const BATCH_SIZE = 5_000;

/** Deletes refusals after 30 days. Returns the number of deleted rows. */
export async function deleteExpiredRefusals({ db }: Pick<Database, 'db'>): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('refusals')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('refusals')
        .select('id')
        .where('hour', '<', sql<Date>`now() - ${RETENTION_DAYS} * interval '1 day'`)
        .limit(BATCH_SIZE),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Deletes refusals of a purged inbox. Returns the number of deleted rows. */
export async function deleteInboxRefusals(
  { db }: Pick<Database, 'db'>,
  inboxId: string,
  batchSize: number,
): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('refusals')
    .where('id', 'in', (eb) =>
      eb.selectFrom('refusals').select('id').where('inbox_id', '=', inboxId).limit(batchSize),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}
