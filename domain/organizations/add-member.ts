import type { Db } from '../../platform/database/tables.ts';
import type { MemberRole } from '../identity/roles.ts';

/**
 * Makes a person a member, in the caller's transaction. Returns false if they are one already; their role then stays.
 */
export async function addMember(
  db: Db,
  { organizationId, userId, role }: { organizationId: string; userId: string; role: MemberRole },
): Promise<boolean> {
  const added = await db
    .insertInto('members')
    .values({ org_id: organizationId, user_id: userId, role })
    .onConflict((conflict) => conflict.doNothing())
    .returning('user_id')
    .executeTakeFirst();
  return added !== undefined;
}

export async function isMember(db: Db, organizationId: string, userId: string): Promise<boolean> {
  const member = await db
    .selectFrom('members')
    .select('user_id')
    .where('org_id', '=', organizationId)
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return member !== undefined;
}
