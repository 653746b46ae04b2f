import type { Database } from '../../platform/database/database.ts';
import { limitKeysOfUser } from '../api-keys/revoke-keys.ts';
import { ROLE_PERMISSIONS } from '../identity/roles.ts';
import { isSafeName } from '../identity/safe-name.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { keepBreakGlassOwners, lockOrganization } from '../organizations/break-glass-owner.ts';
import { reassignOwner } from '../organizations/reassign-owner.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';

export type OwnerAdministrationService = ReturnType<typeof createOwnerAdministrationService>;

export function createOwnerAdministrationService({
  database,
  notifications,
}: {
  database: Database;
  notifications: PersonNotificationService;
}) {
  return {
    /**
     * Makes a member the only owner; the former owners become administrators. All of them get an email.
     *
     * @throws AppError as {@link reassignOwner}; `conflict` also if the organization enforces single sign-on and the new
     * owner could not get in without it.
     */
    reassign: (
      staff: StaffScope,
      organizationId: string,
      {
        userId,
        note,
        leaveWithoutBreakGlass: isAccepted,
      }: { userId: string; note: string; leaveWithoutBreakGlass: boolean },
    ): Promise<void> =>
      database.staffTransaction(staff, async (transaction) => {
        const { db } = transaction;
        await lockOrganization(db, organizationId);
        const { result, left } = await keepBreakGlassOwners(
          db,
          { organizationIds: [organizationId], isAccepted },
          () => reassignOwner(db, { organizationId, userId }),
        );
        const { organizationName, owner, formerOwners } = result;
        // Limits their keys to the permissions that they have now.
        for (const former of formerOwners)
          await limitKeysOfUser(db, {
            organizationId,
            userId: former.userId,
            permissions: ROLE_PERMISSIONS.admin,
          });
        await recordStaffAudit(db, staff, {
          action: 'organization.owner_reassigned',
          resourceType: 'organization',
          resourceId: organizationId,
          organizationIds: [organizationId],
          reason: note,
          details: {
            from: formerOwners.map((former) => former.userId),
            to: userId,
            ...(left.length === 0 ? {} : { left_without_break_glass: left }),
          },
        });
        const params = {
          organizationId,
          organizationName: isSafeName(organizationName) ? organizationName : organizationId,
          newOwner: owner.email,
          at: formatUtc(new Date()),
        };
        for (const { userId: recipient, email } of [owner, ...formerOwners])
          await notifications.notify(transaction, {
            organizationId,
            userId: recipient,
            email,
            template: 'owner-reassigned',
            params,
          });
      }),
  };
}
