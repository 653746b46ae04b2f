import { sql } from 'kysely';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Database, TenantScope, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { PageRequest } from '../../platform/pagination.ts';
import { findRequesterProblem, REQUESTER_PROBLEMS } from '../identity/requester.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { Tier } from '../organizations/tier.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { lockLimits } from '../usage/change-limits.ts';
import { UpgradeRequestEntity, type UpgradeRequestStatus } from './upgrade-request.entity.ts';

type UpgradeRequest = RowOf<typeof UpgradeRequestEntity>;

export interface UpgradeFilter {
  status?: UpgradeRequestStatus | undefined;
  organizationId?: string | undefined;
}

export type Decision = 'approved' | 'rejected';

export interface UpgradeDecision {
  request: UpgradeRequest;
  /** Where the owners pay for the tier; null if nothing has to be paid. */
  checkoutUrl: string | null;
}

export interface UpgradeDecisionOptions {
  database: Database;
  notifications: Pick<NotificationService, 'notifyOwners'>;
  /** Returns the page on which the owners pay for the tier; undefined for a tier that staff grant. */
  findPaymentPage(tenant: TenantScope, tier: Tier): Promise<string> | undefined;
  /** Grants the tier of an approved request, in the transaction of the approval. */
  onApprove(transaction: Transaction, staff: StaffScope, request: UpgradeRequest): Promise<void>;
}

export type UpgradeDecisionService = ReturnType<typeof createUpgradeDecisionService>;

export function createUpgradeDecisionService(options: UpgradeDecisionOptions) {
  const { database, notifications } = options;

  async function openCheckout(staff: StaffScope, id: string): Promise<string | null> {
    const request = await database.staffTransaction(staff, ({ db }) => findRequest(db, id));
    if (request.status !== 'open') throw alreadyDecided(request);
    const { organizationId, tier } = request;
    return (await options.findPaymentPage({ organizationId, requestId: staff.requestId }, tier)) ?? null;
  }

  return {
    list: (staff: StaffScope, { status, organizationId }: UpgradeFilter, page: PageRequest) =>
      database.staffTransaction(staff, ({ db }) =>
        findPage(
          db
            .selectFrom('upgrade_requests')
            .select(columnsOf(UpgradeRequestEntity))
            .$if(status !== undefined, (query) => query.where('status', '=', status ?? 'open'))
            .$if(organizationId !== undefined, (query) => query.where('org_id', '=', organizationId ?? '')),
          'upgrade_requests.id',
          page,
        ),
      ),

    /**
     * Decides an open request, and emails the owners. An approval grants the tier, unless the owners have to pay for it. In
     * that case the answer contains the payment page.
     *
     * @throws AppError `not_found`; `conflict` if the request is already decided or, for an approval, if the organization's
     * tier has changed since the request; `unavailable` if Stripe gives no page, in which case nothing is decided.
     */
    async decide(
      staff: StaffScope,
      id: string,
      { decision, note }: { decision: Decision; note: string },
    ): Promise<UpgradeDecision> {
      // Runs before the transaction, because it calls Stripe. An unused checkout has no effect.
      const checkoutUrl = decision === 'approved' ? await openCheckout(staff, id) : null;
      const request = await database.staffTransaction(staff, async (transaction) => {
        const { db } = transaction;
        const decided = await decideOpen(db, id, { decision, note, staffId: staff.staffId });
        const { organizationId, tier } = decided;
        if (decision === 'approved') {
          await requireAllowedRequester(db, decided);
          await requireSameTier(db, decided);
          await options.onApprove(transaction, staff, decided);
        }
        await recordStaffAudit(db, staff, {
          action: `upgrade_request.${decision}`,
          resourceType: 'upgrade_request',
          resourceId: id,
          organizationIds: [organizationId],
          reason: note,
          details: { tier },
        });
        await notifications.notifyOwners(transaction, {
          organizationId,
          template: templateOf(decision, checkoutUrl !== null),
          params: { organizationId, requestId: id, tier, note },
          dedupeKey: `upgrade/${id}`,
        });
        return decided;
      });
      return { request, checkoutUrl };
    },
  };
}

function templateOf(decision: Decision, isPaid: boolean) {
  if (decision === 'rejected') return 'upgrade-rejected';
  return isPaid ? 'upgrade-payable' : 'upgrade-approved';
}

/** @throws AppError `conflict` if the requester may no longer make the request. */
async function requireAllowedRequester(
  db: Db,
  { organizationId, requestedByKind: kind, requestedById: id }: UpgradeRequest,
): Promise<void> {
  const requester = { organizationId, actor: { kind, id } };
  const problem = await findRequesterProblem(db, requester, { act: 'upgrade_request' });
  if (!problem) return;
  throw new AppError('conflict', {
    detail: `The requester may no longer decide about the tier. ${REQUESTER_PROBLEMS[problem]}`,
    fix: 'Reject the request, so that an owner can make another one, or give the tier anyway: PATCH /api/v1/admin/orgs/{id}/tier.',
    extensions: { requester_problem: problem },
  });
}

/** An approval must not take away a tier that the organization was given after its request. */
async function requireSameTier(db: Db, { organizationId, tier, currentTier }: UpgradeRequest): Promise<void> {
  await lockLimits(db, organizationId);
  const organization = await db
    .selectFrom('organizations')
    .select('tier')
    .where('id', '=', organizationId)
    .executeTakeFirst();
  const now = organization?.tier ?? currentTier;
  if (now === currentTier || now === tier) return;
  throw new AppError('conflict', {
    detail: `The organization asked for ${tier} when it had ${currentTier}; now it has ${now}.`,
    fix: 'Reject the request, or give the tier anyway: PATCH /api/v1/admin/orgs/{id}/tier.',
  });
}

/** A single statement, so that only one of two concurrent decisions succeeds. */
async function decideOpen(
  db: Db,
  id: string,
  { decision, note, staffId }: { decision: Decision; note: string; staffId: string },
): Promise<UpgradeRequest> {
  const decided = await db
    .updateTable('upgrade_requests')
    .set({
      status: decision,
      decided_by: staffId,
      decided_at: sql`now()`,
      decision_note: storableText(note),
    })
    .where('id', '=', id)
    .where('status', '=', 'open')
    .returning(columnsOf(UpgradeRequestEntity))
    .executeTakeFirst();
  if (decided) return decided;
  throw alreadyDecided(await findRequest(db, id));
}

async function findRequest(db: Db, id: string): Promise<UpgradeRequest> {
  const request = await db
    .selectFrom('upgrade_requests')
    .select(columnsOf(UpgradeRequestEntity))
    .where('id', '=', id)
    .executeTakeFirst();
  if (!request) throw notFound('upgrade request', id);
  return request;
}

function alreadyDecided({ id, status }: UpgradeRequest): AppError {
  return new AppError('conflict', {
    detail: `The request ${id} is already ${status}.`,
    fix: 'Give another tier, if it is wanted: PATCH /api/v1/admin/orgs/{id}/tier.',
  });
}
