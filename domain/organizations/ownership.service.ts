import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { unauthenticated } from '../identity/authentication.ts';
import { requireRecentSignIn } from '../identity/person.ts';
import type { MemberRole } from '../identity/roles.ts';
import type { Scope } from '../identity/scope.ts';
import { lockOrganization, requireBreakGlassOwner } from './break-glass-owner.ts';

/** A member, for emails. */
export interface Recipient {
  userId: string;
  email: string;
}

export interface Transfer {
  /** The caller, who is an administrator now. */
  from: Recipient;
  to: Recipient;
}

export interface OwnershipService {
  /**
   * Makes another member the owner, and the caller an administrator. Other owners stay.
   *
   * @throws AppError `session_expired` unless the caller signed in within ten minutes; `permission_denied` for a caller who
   * is no owner; `not_found`; `conflict` for a member who is an owner already, or whose account is suspended or deleted, and
   * if no owner could repair an enforced single sign-on any more.
   */
  transfer(scope: Scope, userId: string): Promise<void>;
}

export interface OwnershipOptions {
  database: Database;
  /** Informs the owners and limits the keys of the former one, in the transaction of the change. */
  onTransfer(transaction: Transaction, scope: Scope, transfer: Transfer): Promise<void>;
}

interface MemberRow extends Recipient {
  role: MemberRole;
  isActive: boolean;
}

export function createOwnershipService({ database, onTransfer }: OwnershipOptions): OwnershipService {
  return {
    transfer: (scope, userId) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const { organizationId, member } = scope;
        if (!member) throw unauthenticated();
        requireRecentSignIn(member.person);
        await lockOrganization(em, organizationId);
        const from = await findMember(em, organizationId, member.person.userId);
        if (!from) throw unauthenticated();
        if (from.role !== 'owner') throw notOwner();
        const to = await findMember(em, organizationId, userId);
        if (!to) throw notFound('member', userId);
        requireEligible(to);
        await em.execute(sql`
          update members set role = case when user_id = ${userId} then 'owner' else 'admin' end
          where org_id = ${organizationId} and user_id in (${userId}, ${from.userId})`);
        await recordAudit(em, scope, {
          action: 'organization.ownership_transferred',
          resourceType: 'organization',
          resourceId: organizationId,
          details: { from: from.userId, to: userId },
        });
        await requireBreakGlassOwner(em, organizationId);
        await onTransfer(transaction, scope, { from, to });
      }),
  };
}

async function findMember(
  em: EntityManager,
  organizationId: string,
  userId: string,
): Promise<MemberRow | undefined> {
  const [row] = await em.execute<MemberRow[]>(sql`
    select m.user_id as "userId", u.email, m.role, u.deleted_at is null and u.status = 'active' as "isActive"
    from members m join users u on u.id = m.user_id
    where m.org_id = ${organizationId} and m.user_id = ${userId}`);
  return row;
}

function requireEligible({ role, isActive }: MemberRow): void {
  if (role === 'owner')
    throw new AppError('conflict', {
      detail: 'The member is an owner already.',
      fix: 'To give up your own role: PATCH /api/v1/org/members/{user_id} with {"role": "admin"}.',
    });
  if (!isActive)
    throw new AppError('conflict', {
      detail: 'The account of the member is suspended or deleted.',
      fix: 'Choose another member.',
    });
}

function notOwner(): AppError {
  return new AppError('permission_denied', {
    detail: 'Only an owner can hand over the organization.',
    fix: 'Ask an owner of the organization.',
    extensions: { permission: 'org:transfer' },
  });
}
