import type { EntityManager } from '@mikro-orm/postgresql';
import { sql } from 'kysely';
import { toDb } from '../../platform/database/bridge.ts';
import type { Db } from '../../platform/database/tables.ts';

/** For the room `suspensions`, which keeps the status in step with the suspensions that are in force. */
export async function setInboxStatus(
  db: Db | EntityManager,
  id: string,
  status: 'active' | 'suspended',
): Promise<void> {
  await toDb(db)
    .updateTable('inboxes')
    .set({ status, updated_at: sql`now()` })
    .where('id', '=', id)
    .where('status', '<>', status)
    .execute();
}

/** Pauses sending from an inbox. An inbox that is already paused keeps its reason. */
export async function pauseSending(db: Db | EntityManager, inboxId: string, reason: string): Promise<void> {
  await toDb(db)
    .updateTable('inboxes')
    .set({ send_paused: true, send_paused_reason: reason, updated_at: sql`now()` })
    .where('id', '=', inboxId)
    .where('send_paused', '=', false)
    .execute();
}
