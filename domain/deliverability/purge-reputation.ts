import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';

const BATCH_SIZE = 5_000;

/**
 * Deletes outcomes that no longer count against an inbox. Only messages of the last 7 days count, and reports arrive
 * for at most another 30 days. Returns the number of deleted outcomes.
 */
export function purgeReputationOutcomes(database: Database): Promise<number> {
  return deleteRows(
    database,
    sql`delete from reputation_outcomes where (inbox_id, kind, message_id, position) in (
         select inbox_id, kind, message_id, position from reputation_outcomes
         where created_at < now() - interval '37 days' limit ${BATCH_SIZE})`,
  );
}
