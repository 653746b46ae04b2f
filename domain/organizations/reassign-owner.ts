import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { MemberRole } from '../identity/roles.ts';

export interface OwnerContact {
  userId: string;
  email: string;
}

export interface Reassignment {
  organizationName: string;
  owner: OwnerContact;
  /** The former owners, who are now administrators. */
  formerOwners: OwnerContact[];
}

interface MemberRow extends OwnerContact {
  role: MemberRole;
  isActive: boolean;
}

/**
 * Makes a member the only owner, and the former owners administrators: for an organization whose owner has left, or has lost
 * control of the account.
 *
 * @throws AppError `not_found` for an unknown organization and for a user who is not a member; `conflict` for a member whose
 * account is suspended or deleted, and for a member who is already the only owner.
 */
export async function reassignOwner(
  db: Db,
  { organizationId, userId }: { organizationId: string; userId: string },
): Promise<Reassignment> {
  const organization = await db
    .selectFrom('organizations')
    .select('name')
    .where('id', '=', organizationId)
    .forNoKeyUpdate()
    .executeTakeFirst();
  if (!organization) throw notFound('organization', organizationId);
  const members = await findOwnersAnd(db, organizationId, userId);
  const owner = members.find((member) => member.userId === userId);
  if (!owner) throw notFound('member', userId);
  if (!owner.isActive)
    throw new AppError('conflict', {
      detail: 'The account of the member is suspended or deleted.',
      fix: 'Choose another member.',
    });
  const formerOwners = members.filter((member) => member !== owner);
  if (owner.role === 'owner' && formerOwners.length === 0)
    throw new AppError('conflict', {
      detail: 'The member is already the only owner.',
      fix: 'Nothing is left to do.',
    });
  await db
    .updateTable('members')
    .set((eb) => ({
      role: eb.case().when('user_id', '=', userId).then('owner').else('admin').end().$castTo<MemberRole>(),
    }))
    .where('org_id', '=', organizationId)
    .where((eb) => eb.or([eb('role', '=', 'owner'), eb('user_id', '=', userId)]))
    .execute();
  return { organizationName: organization.name, owner, formerOwners };
}

/** Finds the owners, and the person if they are a member. */
function findOwnersAnd(db: Db, organizationId: string, userId: string): Promise<MemberRow[]> {
  return selectMembers(db, organizationId)
    .where((eb) => eb.or([eb('members.role', '=', 'owner'), eb('members.user_id', '=', userId)]))
    .execute();
}

/** Selects the members of an organization, with their addresses, and whether they can sign in. */
export function selectMembers(db: Db, organizationId: string) {
  return db
    .selectFrom('members')
    .innerJoin('users', 'users.id', 'members.user_id')
    .select((eb) => [
      'members.user_id as userId',
      'users.email',
      'members.role',
      eb
        .and([eb('users.deleted_at', 'is', null), eb('users.status', '=', 'active')])
        .$castTo<boolean>()
        .as('isActive'),
    ])
    .where('members.org_id', '=', organizationId);
}
