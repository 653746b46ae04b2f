import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { isRoleWithin, type MemberRole } from '../identity/roles.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import { lockOrganization, requireBreakGlassOwner } from './break-glass-owner.ts';
import { requireFreshLoginForOwner, requireGrantableRole, requireManageableRole } from './members.ts';

export interface MemberDetails {
  userId: string;
  email: string;
  name: string | null;
  avatarUrl: string | null;
  role: MemberRole;
  createdAt: Date;
}

/** A member who became an owner, or was one. */
export interface OwnerChange {
  userId: string;
  email: string;
  /** The new role; null for a former member. */
  role: MemberRole | null;
}

/** What ended with a membership. */
export interface Removal {
  keysRevoked: number;
  invitationsRevoked: number;
  /** Connections of MCP hosts that the member had granted. */
  connectionsEnded: number;
}

export interface RoleChange extends MemberDetails {
  keysRevoked: number;
  /** Keys that lost permissions. */
  keysLimited: number;
}

export type MemberService = ReturnType<typeof createMemberService>;

export interface MemberServiceOptions {
  database: Database;
  /** Limits the keys of a member to a lower role, in the transaction of the change. */
  onDemote(
    transaction: Transaction,
    demoted: { organizationId: string; userId: string; role: MemberRole; revokeKeys: boolean },
  ): Promise<Pick<RoleChange, 'keysRevoked' | 'keysLimited'>>;
  /** Informs the owners, in the transaction of the change. */
  onOwnerChange(transaction: Transaction, scope: Scope, change: OwnerChange): Promise<void>;
  /** Revokes keys and invitations of a removed member, in the transaction of the removal. */
  onRemove(
    transaction: Transaction,
    removed: { organizationId: string; userId: string; revokeKeys: boolean },
  ): Promise<Removal>;
}

export function createMemberService(options: MemberServiceOptions) {
  const { database, onDemote, onOwnerChange, onRemove } = options;
  return {
    list: (scope: Scope, page: PageRequest): Promise<Page<MemberDetails>> =>
      database.read(scope, async ({ db }) => {
        requireOrganizationWide(scope);
        const { after: [after] = [], order, limit } = page;
        const rows = await selectMembers(db, scope)
          .$if(after !== undefined, (query) =>
            query.where('members.user_id', order === 'asc' ? '>' : '<', after ?? ''),
          )
          .orderBy('members.user_id', order)
          .limit(limit + 1)
          .execute();
        return toPage(rows, limit, ({ userId }) => [userId]);
      }),

    /**
     * Takes effect with the member's next request. With a lower role, the API keys that they created lose the permissions
     * that the role lacks.
     *
     * @param options.revokeKeys revokes these keys instead, and the keys that they created.
     * @throws AppError `permission_denied` if the old or new role is above the caller's; `conflict` for the last owner, and
     * for the last owner who could repair an enforced single sign-on; `session_expired` for the role `owner`, unless the
     * caller signed in within ten minutes; `not_found`.
     */
    changeRole: (
      scope: Scope,
      userId: string,
      role: MemberRole,
      { revokeKeys = false }: { revokeKeys?: boolean } = {},
    ): Promise<RoleChange> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const { organizationId } = scope;
        const member = await lockMember(db, scope, userId);
        await requireGrantableRole(db, scope, role);
        if (member.role === 'owner' && role !== 'owner') await requireAnotherOwner(db, scope, userId);
        await db
          .updateTable('members')
          .set({ role })
          .where('org_id', '=', organizationId)
          .where('user_id', '=', userId)
          .execute();
        // Runs after the update, which waits for keys that the member is creating.
        const isDemotion = role !== member.role && isRoleWithin(role, member.role);
        const { keysRevoked, keysLimited } = isDemotion
          ? await onDemote(transaction, { organizationId, userId, role, revokeKeys })
          : { keysRevoked: 0, keysLimited: 0 };
        await recordAudit(db, scope, {
          action: 'member.role_changed',
          resourceType: 'user',
          resourceId: userId,
          details: { from: member.role, to: role, keys_revoked: keysRevoked, keys_limited: keysLimited },
        });
        if ((member.role === 'owner') !== (role === 'owner')) {
          await requireBreakGlassOwner(db, organizationId);
          await onOwnerChange(transaction, scope, { ...member, role });
        }
        return { ...member, role, keysRevoked, keysLimited };
      }),

    /**
     * Ends the membership with the member's next request, revokes their pending invitations and ends their connections.
     *
     * @param options.revokeKeys also revokes the API keys that they created, and the keys that those created.
     * @throws AppError as {@link changeRole}.
     */
    remove: (scope: Scope, userId: string, { revokeKeys }: { revokeKeys: boolean }): Promise<Removal> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const { organizationId } = scope;
        const member = await lockMember(db, scope, userId);
        if (member.role === 'owner') await requireAnotherOwner(db, scope, userId);
        await db
          .deleteFrom('members')
          .where('org_id', '=', organizationId)
          .where('user_id', '=', userId)
          .execute();
        // Runs after the deletion, which waits for keys that the member is creating.
        const removal = await onRemove(transaction, { organizationId, userId, revokeKeys });
        await recordAudit(db, scope, {
          action: 'member.removed',
          resourceType: 'user',
          resourceId: userId,
          details: {
            role: member.role,
            keys_revoked: removal.keysRevoked,
            invitations_revoked: removal.invitationsRevoked,
            connections_ended: removal.connectionsEnded,
          },
        });
        if (member.role === 'owner') {
          await requireBreakGlassOwner(db, organizationId);
          await onOwnerChange(transaction, scope, { ...member, role: null });
        }
        return removal;
      }),
  };
}

const selectMembers = (db: Db, { organizationId }: Scope) =>
  db
    .selectFrom('members')
    .innerJoin('users', 'users.id', 'members.user_id')
    .select([
      'members.user_id as userId',
      'users.email',
      'users.name',
      'users.avatar_url as avatarUrl',
      'members.role',
      'members.created_at as createdAt',
    ])
    .where('members.org_id', '=', organizationId);

/** Locks the organization first, so that two owners cannot remove each other at the same time. */
async function lockMember(db: Db, scope: Scope, userId: string): Promise<MemberDetails> {
  requireOrganizationWide(scope);
  await lockOrganization(db, scope.organizationId);
  const member = await selectMembers(db, scope).where('members.user_id', '=', userId).executeTakeFirst();
  if (!member) throw notFound('member', userId);
  await requireManageableRole(db, scope, member.role);
  requireFreshLoginForOwner(scope, member.role);
  return member;
}

/** An owner who has deleted their account does not count. */
async function requireAnotherOwner(db: Db, { organizationId }: Scope, userId: string): Promise<void> {
  const other = await db
    .selectFrom('members')
    .innerJoin('users', 'users.id', 'members.user_id')
    .select('members.user_id')
    .where('members.org_id', '=', organizationId)
    .where('members.role', '=', 'owner')
    .where('members.user_id', '<>', userId)
    .where('users.deleted_at', 'is', null)
    .where('users.status', '=', 'active')
    .limit(1)
    .executeTakeFirst();
  if (!other)
    throw new AppError('conflict', {
      detail: 'The organization needs an owner, and this is the last one.',
      fix: 'Make another member an owner first: PATCH /api/v1/org/members/{user_id}.',
    });
}
