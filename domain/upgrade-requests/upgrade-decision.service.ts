import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, TenantScope, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { findRow, queryRows, type Row } from '../../platform/database/find-rows.ts';
import { storableText } from '../../platform/database/storable.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { findRequesterProblem, REQUESTER_PROBLEMS } from '../identity/requester.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { Tier } from '../organizations/tier.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { lockLimits } from '../usage/change-limits.ts';
import {
  type UpgradeRequest,
  UpgradeRequestEntity,
  type UpgradeRequestStatus,
} from './upgrade-request.entity.ts';

export interface UpgradeFilter {
  status?: UpgradeRequestStatus | undefined;
  organizationId?: string | undefined;
}

export type Decision = 'approved' | 'rejected';

export interface UpgradeDecision {
  request: Row<UpgradeRequest>;
  /** Where the owners pay for the tier; null if nothing has to be paid. */
  checkoutUrl: string | null;
}

export interface UpgradeDecisionService {
  list(staff: StaffScope, filter: UpgradeFilter, page: PageRequest): Promise<Page<Row<UpgradeRequest>>>;
  /**
   * Decides an open request, and emails the owners. An approval grants the tier, unless owners have to pay for it: then
   * the answer has the page on which they do.
   *
   * @throws AppError `not_found`; `conflict` if it is decided already, or to approve one that another tier has overtaken;
   * `unavailable` if Stripe gives no page. Nothing is decided then.
   */
  decide(
    staff: StaffScope,
    id: string,
    decision: { decision: Decision; note: string },
  ): Promise<UpgradeDecision>;
}

export interface UpgradeDecisionOptions {
  database: Database;
  notifications: Pick<NotificationService, 'notifyOwners'>;
  /** Returns the page on which the owners pay for the tier; undefined for a tier that staff grant. */
  findPaymentPage(tenant: TenantScope, tier: Tier): Promise<string> | undefined;
  /** Grants the tier of an approved request, in the transaction of the approval. */
  onApprove(transaction: Transaction, staff: StaffScope, request: Row<UpgradeRequest>): Promise<void>;
}

export function createUpgradeDecisionService(options: UpgradeDecisionOptions): UpgradeDecisionService {
  const { database, notifications } = options;

  async function openCheckout(staff: StaffScope, id: string): Promise<string | null> {
    const request = await database.staffTransaction(staff, ({ em }) => findRequest(em, id));
    if (request.status !== 'open') throw alreadyDecided(request);
    const { organizationId, tier } = request;
    return (await options.findPaymentPage({ organizationId, requestId: staff.requestId }, tier)) ?? null;
  }

  return {
    list: (staff, { status, organizationId }, page) =>
      database.staffTransaction(staff, ({ em }) =>
        findPage(em, UpgradeRequestEntity, {
          where: {
            ...(status === undefined ? {} : { status }),
            ...(organizationId === undefined ? {} : { organizationId }),
          },
          page,
        }),
      ),

    async decide(staff, id, { decision, note }) {
      // Before the transaction, because it asks Stripe. A checkout that is not passed on has no effect.
      const checkoutUrl = decision === 'approved' ? await openCheckout(staff, id) : null;
      const request = await database.staffTransaction(staff, async (transaction) => {
        const { em } = transaction;
        const decided = await decideOpen(em, id, { decision, note, staffId: staff.staffId });
        const { organizationId, tier } = decided;
        if (decision === 'approved') {
          await requireAllowedRequester(em, decided);
          await requireSameTier(em, decided);
          await options.onApprove(transaction, staff, decided);
        }
        await recordStaffAudit(em, staff, {
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

/** @throws AppError `conflict` if the request was made by someone who may no longer make it. */
async function requireAllowedRequester(
  em: EntityManager,
  { organizationId, requestedByKind: kind, requestedById: id }: Row<UpgradeRequest>,
): Promise<void> {
  const requester = { organizationId, actor: { kind, id } };
  const problem = await findRequesterProblem(em, requester, { act: 'upgrade_request' });
  if (!problem) return;
  throw new AppError('conflict', {
    detail: `Who made the request may no longer decide about the tier. ${REQUESTER_PROBLEMS[problem]}`,
    fix: 'Reject the request, so that an owner can make another one. To give the tier anyway: PATCH /api/v1/admin/orgs/{id}/tier.',
    extensions: { requester_problem: problem },
  });
}

/** An approval must not take away a tier that the organization was given after it had asked. */
async function requireSameTier(
  em: EntityManager,
  { organizationId, tier, currentTier }: Row<UpgradeRequest>,
): Promise<void> {
  await lockLimits(em, organizationId);
  const [organization] = await em.execute<{ tier: Tier }[]>(
    sql`select tier from organizations where id = ${organizationId}`,
  );
  const now = organization?.tier ?? currentTier;
  if (now === currentTier || now === tier) return;
  throw new AppError('conflict', {
    detail: `The organization asked for ${tier} when it had ${currentTier}; now it has ${now}.`,
    fix: 'Reject the request. To give the tier anyway: PATCH /api/v1/admin/orgs/{id}/tier.',
  });
}

/** One statement, so that two decisions at the same time give one. */
async function decideOpen(
  em: EntityManager,
  id: string,
  { decision, note, staffId }: { decision: Decision; note: string; staffId: string },
): Promise<Row<UpgradeRequest>> {
  const [decided] = await queryRows(
    em,
    UpgradeRequestEntity,
    (columns) => sql`
    update upgrade_requests set status = ${decision}, decided_by = ${staffId}, decided_at = now(),
      decision_note = ${storableText(note)}
    where id = ${id} and status = 'open' returning ${columns}`,
  );
  if (decided) return decided;
  throw alreadyDecided(await findRequest(em, id));
}

async function findRequest(em: EntityManager, id: string): Promise<Row<UpgradeRequest>> {
  const request = await findRow(em, UpgradeRequestEntity, { where: { id } });
  if (!request) throw notFound('upgrade request', id);
  return request;
}

function alreadyDecided({ id, status }: Row<UpgradeRequest>): AppError {
  return new AppError('conflict', {
    detail: `The request ${id} is ${status} already.`,
    fix: 'To give another tier: PATCH /api/v1/admin/orgs/{id}/tier.',
  });
}
