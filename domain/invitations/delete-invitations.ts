import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';

/**
 * Deletes the invitations of a purged person, which contain their address. One that is still open stays: it is the
 * organization's offer to the address, and ends by itself. For workers.
 */
export async function deleteInvitationsOf(
  em: EntityManager,
  { userId, email }: { userId: string; email: string },
): Promise<void> {
  await em.execute(sql`
    delete from invitations where accepted_by_user_id = ${userId}
      or email = ${email} and (accepted_at is not null or revoked_at is not null or expires_at <= now())`);
}
