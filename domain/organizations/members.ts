import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { unauthenticated } from '../identity/authentication.ts';
import { requireFreshLogin } from '../identity/person.ts';
import { isRoleWithin, type MemberRole, ROLE_PERMISSIONS } from '../identity/roles.ts';
import type { Scope } from '../identity/scope.ts';

/**
 * Requires that the caller may give the role to someone. A person cannot give a role above their own. A key cannot give a
 * role with a permission that the key lacks. Keys never have some permissions, so a key cannot appoint an approver for its
 * own messages.
 *
 * @throws AppError `permission_denied`; `session_expired` as {@link requireFreshLoginForOwner}.
 */
export async function requireGrantableRole(db: Db, scope: Scope, role: MemberRole): Promise<void> {
  const isGrantable = scope.member
    ? isRoleWithin(role, await findRole(db, scope))
    : ROLE_PERMISSIONS[role].every((permission) => scope.permissions.has(permission));
  if (!isGrantable) throw roleTooHigh(role);
  requireFreshLoginForOwner(scope, role);
}

/**
 * A stolen session must not be enough to take over an organization.
 *
 * @throws AppError `session_expired` for the role `owner`, unless the caller signed in within the last ten minutes.
 */
export function requireFreshLoginForOwner({ member }: Scope, role: MemberRole): void {
  if (role === 'owner' && member) requireFreshLogin(member.person);
}

/**
 * Requires that the caller may take the role from someone. A key can act at most as an administrator.
 *
 * @throws AppError `permission_denied`.
 */
export async function requireManageableRole(db: Db, scope: Scope, role: MemberRole): Promise<void> {
  const own = scope.member ? await findRole(db, scope) : 'admin';
  if (!isRoleWithin(role, own)) throw roleTooHigh(role);
}

/** The person's present role, which may have changed since the request was authenticated. */
async function findRole(db: Db, { actor, organizationId }: Scope): Promise<MemberRole> {
  const member = await db
    .selectFrom('members')
    .select('role')
    .where('org_id', '=', organizationId)
    .where('user_id', '=', actor.id)
    .forShare()
    .executeTakeFirst();
  if (!member) throw unauthenticated();
  if (!ROLE_PERMISSIONS[member.role].includes('members:manage')) throw roleTooHigh(member.role);
  return member.role;
}

function roleTooHigh(role: MemberRole): AppError {
  return new AppError('permission_denied', {
    detail: `You may not grant, change or remove the role ${role}.`,
    fix: 'Ask an owner of the organization.',
    extensions: { permission: 'members:manage' },
  });
}

/**
 * Makes a person a member, in the caller's transaction. Returns false if the person is already a member, whose role then
 * stays.
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
