import type { Db } from '../../platform/database/tables.ts';

/**
 * Deletes the emails to a purged person, also those before they had an account: the rows contain their address. Returns
 * their number. For workers.
 */
export async function deletePersonNotifications(
  db: Db,
  { userId, email }: { userId: string; email: string },
): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('notifications')
    .where((eb) => eb.or([eb('user_id', '=', userId), eb('email', '=', email)]))
    .executeTakeFirst();
  return Number(numDeletedRows);
}
