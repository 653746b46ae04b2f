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

/** Pauses sending from an inbox. An inbox that is already paused keeps its reason. */
export async function pauseSending(db: Db, inboxId: string, reason: string): Promise<void> {
  await db
    .updateTable('inboxes')
    .set({ send_paused: true, send_paused_reason: reason, updated_at: sql`now()` })
    .where('id', '=', inboxId)
    .where('send_paused', '=', false)
    .execute();
}
