import type { Database } from '../../platform/database/database.ts';
import { findRow } from '../../platform/database/find-rows.ts';
import { AppError } from '../../platform/errors.ts';
import { requireOrganization } from '../administration/require-organization.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { type BillingState, readBillingState } from './customer-rows.ts';
import { PaymentGraceEntity } from './payment-grace.entity.ts';
import type { PaymentGraceService } from './payment-grace.service.ts';

export interface BillingAdministrationService {
  /** @throws AppError `not_found`. */
  get(staff: StaffScope, organizationId: string): Promise<BillingState>;
  /**
   * Gives an organization more time to pay, and ends its suspension for the payment.
   *
   * @returns when it will be suspended.
   * @throws AppError `not_found`; `conflict` if no payment is overdue.
   */
  extendGrace(
    staff: StaffScope,
    organizationId: string,
    extension: { days: number; note: string },
  ): Promise<Date>;
}

export function createBillingAdministrationService({
  database,
  graces,
  now = () => new Date(),
}: {
  database: Database;
  graces: PaymentGraceService;
  now?: () => Date;
}): BillingAdministrationService {
  return {
    get: (staff, organizationId) =>
      database.staffTransaction(staff, async ({ em }) => {
        await requireOrganization(em, organizationId);
        return readBillingState(em, organizationId);
      }),

    extendGrace: (staff, organizationId, { days, note }) =>
      database.staffTransaction(staff, async (transaction) => {
        const { em } = transaction;
        await requireOrganization(em, organizationId);
        const grace = await findRow(em, PaymentGraceEntity, { where: { organizationId, closedAt: null } });
        const suspendAt =
          grace && (await graces.extend(transaction, { graceId: grace.id, days, now: now() }));
        if (!grace || !suspendAt) throw nothingOverdue(organizationId);
        await recordStaffAudit(em, staff, {
          action: 'payment_grace.extended',
          resourceType: 'subscription',
          resourceId: grace.subscriptionId,
          organizationIds: [organizationId],
          reason: note,
          details: { days, suspend_at: suspendAt.toISOString() },
        });
        return suspendAt;
      }),
  };
}

function nothingOverdue(organizationId: string): AppError {
  return new AppError('conflict', {
    detail: `No payment of ${organizationId} is overdue.`,
    fix: 'Nothing is left to do.',
  });
}
