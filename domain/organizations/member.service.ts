import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { SerializedRow } from '../../platform/database/serialized-row.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { isRoleWithin, type MemberRole } from '../identity/roles.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import { lockOrganization, requireBreakGlassOwner } from './break-glass-owner.ts';
import {
  requireFreshLoginForOwner,
  requireGrantableRole,
  requireManageableRole,
} from './member-authority.ts';

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
  /** The new role; null for a person who is no member any more. */
  role: MemberRole | null;
}

/** What ended with a membership. */
export interface Removal {
  keysRevoked: number;
  invitationsRevoked: number;
}

export interface RoleChange extends MemberDetails {
  keysRevoked: number;
  /** Keys that lost permissions. */
  keysLimited: number;
}

export interface MemberService {
  list(scope: Scope, page: PageRequest): Promise<Page<MemberDetails>>;
  /**
   * Takes effect with the member's next request. With a lower role, the API keys that they created lose the permissions that
   * the role lacks.
   *
   * @param options.revokeKeys revokes these keys instead, with the keys of those keys.
   * @throws AppError `permission_denied` for a role above the caller's own, as the old or the new one; `conflict` for the
   * last owner, and the last who could repair an enforced single sign-on; `session_expired` for the role `owner`, unless the caller signed in within ten minutes; `not_found`.
   */
  changeRole(
    scope: Scope,
    userId: string,
    role: MemberRole,
    options?: { revokeKeys?: boolean },
  ): Promise<RoleChange>;
  /**
   * Ends the membership with the member's next request, and revokes their pending invitations.
   *
   * @param options.revokeKeys also revokes the API keys that they created, with the keys of those keys.
   * @throws AppError as {@link changeRole}.
   */
  remove(scope: Scope, userId: string, options: { revokeKeys: boolean }): Promise<Removal>;
}

export interface MemberServiceOptions {
  database: Database;
  /** Ends what exceeds a lower role, in the transaction of the change. */
  onDemote(
    transaction: Transaction,
    demoted: { organizationId: string; userId: string; role: MemberRole; revokeKeys: boolean },
  ): Promise<Pick<RoleChange, 'keysRevoked' | 'keysLimited'>>;
  /** Informs the owners, in the transaction of the change. */
  onOwnerChange(transaction: Transaction, scope: Scope, change: OwnerChange): Promise<void>;
  /** Ends what a removed member leaves behind, in the transaction of the removal. */
  onRemove(
    transaction: Transaction,
    removed: { organizationId: string; userId: string; revokeKeys: boolean },
  ): Promise<Removal>;
}

export function createMemberService(options: MemberServiceOptions): MemberService {
  const { database, onDemote, onOwnerChange, onRemove } = options;
  return {
    list: (scope, page) =>
      database.read(scope, async (reader) => {
        requireOrganizationWide(scope);
        const { after: [after] = [], order, limit } = page;
        const position =
          after === undefined
            ? sql`true`
            : order === 'asc'
              ? sql`m.user_id > ${after}`
              : sql`m.user_id < ${after}`;
        const rows = await reader.execute<SerializedRow<MemberDetails>[]>(sql`
          ${selectMembers(scope)} and ${position}
          order by m.user_id ${order === 'asc' ? sql`asc` : sql`desc`} limit ${limit + 1}`);
        return toPage(rows.map(parseMember), limit, ({ userId }) => [userId]);
      }),

    changeRole: (scope, userId, role, { revokeKeys = false } = {}) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const { organizationId } = scope;
        const member = await lockMember(em, scope, userId);
        await requireGrantableRole(em, scope, role);
        if (member.role === 'owner' && role !== 'owner') await requireAnotherOwner(em, scope, userId);
        await em.execute(sql`
          update members set role = ${role} where org_id = ${organizationId} and user_id = ${userId}`);
        // After the update, which waits for keys that the member is creating.
        const isDemotion = role !== member.role && isRoleWithin(role, member.role);
        const { keysRevoked, keysLimited } = isDemotion
          ? await onDemote(transaction, { organizationId, userId, role, revokeKeys })
          : { keysRevoked: 0, keysLimited: 0 };
        await recordAudit(em, scope, {
          action: 'member.role_changed',
          resourceType: 'user',
          resourceId: userId,
          details: { from: member.role, to: role, keys_revoked: keysRevoked, keys_limited: keysLimited },
        });
        if ((member.role === 'owner') !== (role === 'owner')) {
          await requireBreakGlassOwner(em, organizationId);
          await onOwnerChange(transaction, scope, { ...member, role });
        }
        return { ...member, role, keysRevoked, keysLimited };
      }),

    remove: (scope, userId, { revokeKeys }) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const member = await lockMember(em, scope, userId);
        if (member.role === 'owner') await requireAnotherOwner(em, scope, userId);
        await em.execute(sql`
          delete from members where org_id = ${scope.organizationId} and user_id = ${userId}`);
        // After the deletion, which waits for keys that the member is creating.
        const { organizationId } = scope;
        const removal = await onRemove(transaction, { organizationId, userId, revokeKeys });
        await recordAudit(em, scope, {
          action: 'member.removed',
          resourceType: 'user',
          resourceId: userId,
          details: {
            role: member.role,
            keys_revoked: removal.keysRevoked,
            invitations_revoked: removal.invitationsRevoked,
          },
        });
        if (member.role === 'owner') {
          await requireBreakGlassOwner(em, organizationId);
          await onOwnerChange(transaction, scope, { ...member, role: null });
        }
        return removal;
      }),
  };
}

const selectMembers = ({ organizationId }: Scope) => sql`
  select m.user_id as "userId", u.email, u.name, u.avatar_url as "avatarUrl", m.role, m.created_at as "createdAt"
  from members m join users u on u.id = m.user_id where m.org_id = ${organizationId}`;

const parseMember = (row: SerializedRow<MemberDetails>): MemberDetails => ({
  ...row,
  createdAt: new Date(row.createdAt),
});

/** Locks the organization first, so that two owners cannot remove each other at the same time. */
async function lockMember(em: EntityManager, scope: Scope, userId: string): Promise<MemberDetails> {
  requireOrganizationWide(scope);
  await lockOrganization(em, scope.organizationId);
  const [row] = await em.execute<SerializedRow<MemberDetails>[]>(
    sql`${selectMembers(scope)} and m.user_id = ${userId}`,
  );
  if (!row) throw notFound('member', userId);
  await requireManageableRole(em, scope, row.role);
  requireFreshLoginForOwner(scope, row.role);
  return parseMember(row);
}

/** An owner who has deleted their account does not count. */
async function requireAnotherOwner(
  em: EntityManager,
  { organizationId }: Scope,
  userId: string,
): Promise<void> {
  const others = await em.execute<object[]>(sql`
    select from members m join users u on u.id = m.user_id and u.deleted_at is null and u.status = 'active'
    where m.org_id = ${organizationId} and m.role = 'owner' and m.user_id <> ${userId} limit 1`);
  if (others.length === 0)
    throw new AppError('conflict', {
      detail: 'The organization needs an owner, and this is the last one.',
      fix: 'Make another member an owner first.',
    });
}
