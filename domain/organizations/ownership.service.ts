import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { unauthenticated } from '../identity/authentication.ts';
import { requireRecentSignIn } from '../identity/person.ts';
import type { MemberRole } from '../identity/roles.ts';
import type { Scope } from '../identity/scope.ts';
import { lockOrganization, requireBreakGlassOwner } from './break-glass-owner.ts';
import { selectMembers } from './reassign-owner.ts';

/** A member, for emails. */
export interface Recipient {
  userId: string;
  email: string;
}

export interface Transfer {
  /** The caller, who is now an administrator. */
  from: Recipient;
  to: Recipient;
}

export type OwnershipService = ReturnType<typeof createOwnershipService>;

export interface OwnershipOptions {
  database: Database;
  /** Informs the owners and limits the keys of the former owner, in the transaction of the change. */
  onTransfer(transaction: Transaction, scope: Scope, transfer: Transfer): Promise<void>;
}

interface MemberRow extends Recipient {
  role: MemberRole;
  isActive: boolean;
}

export function createOwnershipService({ database, onTransfer }: OwnershipOptions) {
  return {
    /**
     * Makes another member the owner, and the caller an administrator. Other owners stay.
     *
     * @throws AppError `session_expired` unless the caller signed in within ten minutes; `permission_denied` for a caller
     * who is not an owner; `not_found`; `conflict` for a member who is already an owner, or whose account is suspended or
     * deleted, and if no owner could then repair an enforced single sign-on.
     */
    transfer: (scope: Scope, userId: string): Promise<void> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const { organizationId, member } = scope;
        if (!member) throw unauthenticated();
        requireRecentSignIn(member.person);
        await lockOrganization(db, organizationId);
        const from = await findMember(db, organizationId, member.person.userId);
        if (!from) throw unauthenticated();
        if (from.role !== 'owner') throw notOwner();
        const to = await findMember(db, organizationId, userId);
        if (!to) throw notFound('member', userId);
        requireEligible(to);
        await exchangeRoles(db, organizationId, { from, to });
        await recordAudit(db, scope, {
          action: 'organization.ownership_transferred',
          resourceType: 'organization',
          resourceId: organizationId,
          details: { from: from.userId, to: userId },
        });
        await requireBreakGlassOwner(db, organizationId);
        await onTransfer(transaction, scope, { from, to });
      }),
  };
}

function findMember(db: Db, organizationId: string, userId: string): Promise<MemberRow | undefined> {
  return selectMembers(db, organizationId).where('members.user_id', '=', userId).executeTakeFirst();
}

async function exchangeRoles(db: Db, organizationId: string, { from, to }: Transfer): Promise<void> {
  await db
    .updateTable('members')
    .set((eb) => ({
      role: eb.case().when('user_id', '=', to.userId).then('owner').else('admin').end().$castTo<MemberRole>(),
    }))
    .where('org_id', '=', organizationId)
    .where('user_id', 'in', [to.userId, from.userId])
    .execute();
}

function requireEligible({ role, isActive }: MemberRow): void {
  if (role === 'owner')
    throw new AppError('conflict', {
      detail: 'The member is already an owner.',
      fix: 'Give up your own role instead: PATCH /api/v1/org/members/{user_id} with {"role": "admin"}.',
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
