import type { Db } from '../../platform/database/tables.ts';

/**
 * Removes the client addresses of a purged person from the audit logs of all organizations. The entries keep the person's
 * id; names are not stored in them. Returns the number of changed entries. For workers.
 */
export async function erasePersonFromAudit(db: Db, userId: string): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('audit_entries')
    .set({ ip: null })
    .where('actor_kind', '=', 'user')
    .where('actor_id', '=', userId)
    .where('ip', 'is not', null)
    .executeTakeFirst();
  return Number(numUpdatedRows);
}
