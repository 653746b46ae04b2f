import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { InboxEntity } from './inbox.entity.ts';

/** Whether a purge of the inbox was requested. */
export async function isPurgeRequested(database: Database, inboxId: string): Promise<boolean> {
  const requested = await database.autocommit((em) =>
    em.count(InboxEntity, { id: inboxId, purgeRequestedAt: { $ne: null } }),
  );
  return requested > 0;
}

/** Records that all messages of the inbox have been deleted. */
export async function markPurged(database: Database, inboxId: string): Promise<void> {
  await database.query(sql`update inboxes set purged_at = now() where id = ${inboxId}`);
}
