import type { Database } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { requireOrganization } from '../administration/organization-directory.service.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { type BillingState, readBillingState } from './billing-state.ts';
import type { PaymentGraceService } from './payment-grace.service.ts';

/** A subscription with a problem that an operator has to resolve. */
export interface SubscriptionProblem {
  organizationId: string;
  subscriptionId: string;
  problem: string;
}

/** More than an operator can work through at once. */
const MAX_PROBLEMS = 25;

export type BillingAdministrationService = ReturnType<typeof createBillingAdministrationService>;

export function createBillingAdministrationService({
  database,
  graces,
  now = () => new Date(),
}: {
  database: Database;
  graces: PaymentGraceService;
  now?: () => Date;
}) {
  return {
    /** At most {@link MAX_PROBLEMS}, those read least recently first. */
    listProblems: (staff: StaffScope): Promise<SubscriptionProblem[]> =>
      database.staffTransaction(staff, ({ db }) =>
        db
          .selectFrom('billing_subscriptions')
          .select(['org_id as organizationId', 'id as subscriptionId', 'problem'])
          .where('problem', 'is not', null)
          .where('ended_at', 'is', null)
          .orderBy('synced_at')
          .orderBy('id')
          .limit(MAX_PROBLEMS)
          .$narrowType<{ problem: string }>()
          .execute(),
      ),

    /** @throws AppError `not_found`. */
    get: (staff: StaffScope, organizationId: string): Promise<BillingState> =>
      database.staffTransaction(staff, async ({ db }) => {
        await requireOrganization(db, organizationId);
        return readBillingState(db, organizationId);
      }),

    /**
     * Gives an organization more time to pay, and ends its suspension for the payment.
     *
     * @returns when it will be suspended.
     * @throws AppError `not_found`; `conflict` if no payment is overdue.
     */
    extendGrace: (
      staff: StaffScope,
      organizationId: string,
      { days, note }: { days: number; note: string },
    ): Promise<Date> =>
      database.staffTransaction(staff, async (transaction) => {
        const { db } = transaction;
        await requireOrganization(db, organizationId);
        // There are several only if a second subscription is also overdue; each would suspend the organization.
        const open = await db
          .selectFrom('payment_graces')
          .select('id')
          .where('org_id', '=', organizationId)
          .where('closed_at', 'is', null)
          .execute();
        const suspensions: Date[] = [];
        for (const { id: graceId } of open) {
          const extended = await graces.extend(transaction, { graceId, days, now: now() });
          if (!extended) continue;
          const { subscriptionId, suspendAt } = extended;
          suspensions.push(suspendAt);
          await recordStaffAudit(db, staff, {
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
