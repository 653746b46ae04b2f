import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { findRows } from '../../platform/database/find-rows.ts';
import { AppError } from '../../platform/errors.ts';
import { requireOrganization } from '../administration/require-organization.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { type BillingState, readBillingState } from './customer-rows.ts';
import { PaymentGraceEntity } from './payment-grace.entity.ts';
import type { PaymentGraceService } from './payment-grace.service.ts';

/** A subscription that an operator has to settle. */
export interface SubscriptionProblem {
  organizationId: string;
  subscriptionId: string;
  problem: string;
}

export interface BillingAdministrationService {
  /** At most {@link MAX_PROBLEMS}, the longest unread first. */
  listProblems(staff: StaffScope): Promise<SubscriptionProblem[]>;
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

/** More than an operator settles at a time. */
export const MAX_PROBLEMS = 25;

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
    listProblems: (staff) =>
      database.staffTransaction(staff, ({ em }) =>
        em.execute<SubscriptionProblem[]>(sql`
          select org_id as "organizationId", id as "subscriptionId", problem from billing_subscriptions
          where problem is not null and ended_at is null order by synced_at, id limit ${MAX_PROBLEMS}`),
      ),

    get: (staff, organizationId) =>
      database.staffTransaction(staff, async ({ em }) => {
        await requireOrganization(em, organizationId);
        return readBillingState(em, organizationId);
      }),

    extendGrace: (staff, organizationId, { days, note }) =>
      database.staffTransaction(staff, async (transaction) => {
        const { em } = transaction;
        await requireOrganization(em, organizationId);
        // Several only with a second subscription: the organization would be suspended for each of them.
        const open = await findRows(em, PaymentGraceEntity, { where: { organizationId, closedAt: null } });
        const suspensions: Date[] = [];
        for (const { id: graceId } of open) {
          const extended = await graces.extend(transaction, { graceId, days, now: now() });
          if (!extended) continue;
          const { subscriptionId, suspendAt } = extended;
          suspensions.push(suspendAt);
          await recordStaffAudit(em, staff, {
            action: 'payment_grace.extended',
            resourceType: 'subscription',
            resourceId: subscriptionId,
            organizationIds: [organizationId],
            reason: note,
            details: { days, suspend_at: suspendAt.toISOString() },
          });
        }
        const [first] = suspensions.sort((left, right) => left.getTime() - right.getTime());
        if (!first) throw nothingOverdue(organizationId);
        return first;
      }),
  };
}

function nothingOverdue(organizationId: string): AppError {
  return new AppError('conflict', {
    detail: `No payment of ${organizationId} is overdue.`,
    fix: 'Nothing is left to do.',
  });
}
