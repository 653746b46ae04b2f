import type { Database } from '../../platform/database/database.ts';
import type { OptionsOf } from '../../platform/options-of.ts';
import type { Permission } from '../identity/permissions.ts';
import { ROLE_PERMISSIONS } from '../identity/roles.ts';
import { createEnvironmentService } from './environment.service.ts';
import { createMemberService } from './member.service.ts';
import { createOrganizationService } from './organization.service.ts';
import { createOwnershipService } from './ownership.service.ts';

type Transaction = Parameters<OptionsOf<typeof createMemberService>['onDemote']>[0];
type Member = { organizationId: string; userId: string };

interface Options {
  database: Database;
  ownerNotices: {
    ownerChanged: OptionsOf<typeof createMemberService>['onOwnerChange'];
    ownershipTransferred: OptionsOf<typeof createOwnershipService>['onTransfer'];
  };
  /** Functions of the rooms above for the keys and invitations of a member. Each returns how many it changed. */
  ofMember: {
    revokeKeys(transaction: Transaction, member: Member): Promise<number>;
    endConnections(transaction: Transaction, member: Member): Promise<number>;
    limitKeys(
      transaction: Transaction,
      member: Member & { permissions: readonly Permission[] },
    ): Promise<number>;
    revokeInvitations(transaction: Transaction, member: Member): Promise<number>;
  };
}

/** What the API does with organizations, their environments and members. */
export function createOrganizations({ database, ownerNotices, ofMember }: Options) {
  return {
    organizations: createOrganizationService({ database }),
    environments: createEnvironmentService({ database }),
    ownership: createOwnershipService({
      database,
      async onTransfer(transaction, scope, transfer) {
        await ofMember.limitKeys(transaction, {
          organizationId: scope.organizationId,
          userId: transfer.from.userId,
          permissions: ROLE_PERMISSIONS.admin,
        });
        await ownerNotices.ownershipTransferred(transaction, scope, transfer);
      },
    }),
    members: createMemberService({
      database,
      onOwnerChange: ownerNotices.ownerChanged,
      async onDemote(transaction, { role, revokeKeys, ...member }) {
        if (revokeKeys)
          return { keysRevoked: await ofMember.revokeKeys(transaction, member), keysLimited: 0 };
        const permissions = ROLE_PERMISSIONS[role];
        return {
          keysRevoked: 0,
          keysLimited: await ofMember.limitKeys(transaction, { ...member, permissions }),
        };
      },
      async onRemove(transaction, { revokeKeys, ...member }) {
        return {
          keysRevoked: revokeKeys ? await ofMember.revokeKeys(transaction, member) : 0,
          connectionsEnded: await ofMember.endConnections(transaction, member),
          invitationsRevoked: await ofMember.revokeInvitations(transaction, member),
        };
      },
    }),
  };
}
