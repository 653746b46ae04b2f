import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';

/**
 * Deletes the emails to a purged person, also those before they had an account: the rows contain their address. Returns
 * their number. For workers.
 */
export async function deletePersonNotifications(
  em: EntityManager,
  { userId, email }: { userId: string; email: string },
): Promise<number> {
  const deleted = await em.execute<object[]>(
    sql`delete from notifications where user_id = ${userId} or email = ${email} returning id`,
  );
  return deleted.length;
}
