import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { AppError, notFound } from '../../platform/errors.ts';
import type { MemberRole } from '../identity/roles.ts';

export interface OwnerContact {
  userId: string;
  email: string;
}

export interface Reassignment {
  organizationName: string;
  owner: OwnerContact;
  /** They are administrators now. */
  formerOwners: OwnerContact[];
}

interface MemberRow extends OwnerContact {
  role: MemberRole;
  isActive: boolean;
}

/**
 * Makes a member the only owner, and the former owners administrators: for an organization whose owner is gone, or whose
 * owner's account is no longer theirs.
 *
 * @throws AppError `not_found` for an unknown organization and for a user who is no member; `conflict` for a member whose
 * account is suspended or deleted, and for the only owner.
 */
export async function reassignOwner(
  em: EntityManager,
  { organizationId, userId }: { organizationId: string; userId: string },
): Promise<Reassignment> {
  const [organization] = await em.execute<{ name: string }[]>(
    sql`select name from organizations where id = ${organizationId} for no key update`,
  );
  if (!organization) throw notFound('organization', organizationId);
  const members = await em.execute<MemberRow[]>(sql`
    select m.user_id as "userId", u.email, m.role, u.deleted_at is null and u.status = 'active' as "isActive"
    from members m join users u on u.id = m.user_id
    where m.org_id = ${organizationId} and (m.role = 'owner' or m.user_id = ${userId})`);
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
      detail: 'The member is the only owner already.',
      fix: 'Nothing is left to do.',
    });
  await em.execute(sql`
    update members set role = case when user_id = ${userId} then 'owner' else 'admin' end
    where org_id = ${organizationId} and (role = 'owner' or user_id = ${userId})`);
  return { organizationName: organization.name, owner, formerOwners };
}
