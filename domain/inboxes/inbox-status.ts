import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';

/** For the room `suspensions`, which keeps the status in step with the suspensions in force. */
export async function setInboxStatus(db: Db, id: string, status: 'active' | 'suspended'): Promise<void> {
  await db
    .updateTable('inboxes')
    .set({ status, updated_at: sql`now()` })
    .where('id', '=', id)
    .where('status', '<>', status)
    .execute();
}

/**
 * Pauses sending from an inbox that exceeded the reputation limits. If someone paused it before, that pause keeps its reason,
 * and the limits are remembered.
 */
export async function pauseForReputation(db: Db, inboxId: string, reason: string): Promise<void> {
  await db
    .updateTable('inboxes')
    .set({
      reputation_paused: true,
      send_paused: true,
      send_paused_reason: sql`coalesce(send_paused_reason, ${reason})`,
      send_paused_at: sql`coalesce(send_paused_at, now())`,
      updated_at: sql`now()`,
    })
    .where('id', '=', inboxId)
    .where('reputation_paused', '=', false)
    .execute();
}
