import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';

const BATCH_SIZE = 5_000;

/** Deletes sign-ins that never came back from their provider. Returns how many. */
export function purgeOauthTransactions(database: Database): Promise<number> {
  return deleteRows(
    database,
    sql`delete from oauth_transactions where state_hash in (
      select state_hash from oauth_transactions where expires_at < now() limit ${BATCH_SIZE})`,
  );
}
