import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';

export interface RequestedPurge {
  organizationId: string;
  /** As text of PostgreSQL. */
  requestedAt: string;
}

/** Returns the purge of an inbox that was requested and has not ended; null if there is none. */
export async function findRequestedPurge(
  database: Database,
  inboxId: string,
): Promise<RequestedPurge | null> {
  const [row] = await database.query<RequestedPurge>(sql`
    select org_id as "organizationId", purge_requested_at::text as "requestedAt" from inboxes
    where id = ${inboxId} and purge_requested_at is not null and purged_at is null`);
  return row ?? null;
}

/** Records that all messages of the inbox have been deleted. */
export async function markPurged(database: Database, inboxId: string): Promise<void> {
  await database.query(sql`update inboxes set purged_at = now() where id = ${inboxId}`);
}
