import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';

/**
 * Deletes the invitations of a purged person, which contain their address. Open invitations stay: each is the organization's
 * offer to the address, and expires. For workers.
 */
export async function deleteInvitationsOf(
  db: Db,
  { userId, email }: { userId: string; email: string },
): Promise<void> {
  await db
    .deleteFrom('invitations')
    .where((eb) =>
      eb.or([
        eb('accepted_by_user_id', '=', userId),
        eb.and([
          eb('email', '=', email),
          eb.or([
            eb('accepted_at', 'is not', null),
            eb('revoked_at', 'is not', null),
            eb('expires_at', '<=', sql<Date>`now()`),
          ]),
        ]),
      ]),
    )
    .execute();
}
