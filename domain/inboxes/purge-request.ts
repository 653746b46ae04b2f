import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { InboxEntity } from './inbox.entity.ts';

/** Whether somebody asked to purge the inbox. */
export async function findRequestedPurge(database: Database, inboxId: string): Promise<boolean> {
  const requested = await database.autocommit((em) =>
    em.count(InboxEntity, { id: inboxId, purgeRequestedAt: { $ne: null } }),
  );
  return requested > 0;
}

/** Records that nothing of the inbox's mail is left. */
export async function markPurged(database: Database, inboxId: string): Promise<void> {
  await database.query(sql`update inboxes set purged_at = now() where id = ${inboxId}`);
}
