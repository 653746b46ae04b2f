import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import type { Row } from '../../platform/database/find-rows.ts';
import { storableText } from '../../platform/database/storable.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { requireRecentSignIn } from '../identity/person.ts';
import { isSafeName } from '../identity/safe-name.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { findPolicies } from '../policies/find-policies.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { type Impersonation, ImpersonationEntity } from './impersonation.entity.ts';
import { createImpersonationToken, hashImpersonationToken } from './impersonation-token.ts';
import { findOperations, type OperationCount, reportEnd } from './report-end.ts';

export const MAX_IMPERSONATION_MINUTES = 60;
const MAX_OPEN = 5;

export interface NewImpersonation {
  reason: string;
  /** At most {@link MAX_IMPERSONATION_MINUTES}. */
  durationMinutes: number;
  allowsWrite: boolean;
}

export interface StartedImpersonation {
  id: string;
  /** Shown once. */
  token: string;
  expiresAt: Date;
}

export interface ImpersonationDetails {
  impersonation: Row<Impersonation>;
  /** What it has called so far. */
  operations: OperationCount[];
}

export interface ImpersonationService {
  /**
   * Begins a visit to an organization, of which its owners are informed.
   *
   * @throws AppError `not_found`; `permission_denied` for writing without the role `admin`; `session_expired` for writing
   * without a sign-in within ten minutes; `policy_violation` if the organization asks for consent and has not given it, of
   * which its owners are informed; `conflict` for a closed organization, and beyond five open ones.
   */
  start(staff: StaffScope, organizationId: string, input: NewImpersonation): Promise<StartedImpersonation>;
  /** The visits to an organization. @throws AppError `not_found`. */
  list(staff: StaffScope, organizationId: string, page: PageRequest): Promise<Page<ImpersonationDetails>>;
  /**
   * Ends a visit with its next request. Does nothing if it has ended.
   *
   * @throws AppError `not_found`; `permission_denied` for that of another staff member, without the role `admin`.
   */
  end(staff: StaffScope, impersonationId: string): Promise<void>;
  /** Ends the visit of a token, which is the proof. Does nothing if there is none. */
  endByToken(token: string, requestId: string): Promise<void>;
}

export function createImpersonationService({
  database,
  notifications,
}: {
  database: Database;
  notifications: NotificationService;
}): ImpersonationService {
  return {
    async start(staff, organizationId, input) {
      if (input.allowsWrite) requireWriter(staff);
      return database.staffTransaction(staff, async (transaction) => {
        const { em } = transaction;
        const organization = await requireOpenOrganization(em, organizationId);
        await requireConsent(transaction, notifications, { staff, organization, reason: input.reason });
        await requireFewOpen(em, staff);
        const token = createImpersonationToken();
        const started = await insertImpersonation(em, staff, { organizationId, input, token });
        const { id, expiresAt } = started;
        await recordStaffAudit(em, staff, {
          action: 'impersonation.started',
          resourceType: 'impersonation',
          resourceId: id,
          organizationIds: [organizationId],
          reason: input.reason,
          details: { allows_write: input.allowsWrite, expires_at: expiresAt.toISOString() },
        });
        await notifications.notifyOwners(transaction, {
          organizationId,
          template: 'staff-access',
          params: {
            ...nameOf(organization),
            staffId: staff.staffId,
            reason: input.reason,
            allowsWrite: input.allowsWrite,
            at: formatUtc(new Date()),
            until: formatUtc(expiresAt),
          },
          dedupeKey: `staff-access/${id}`,
        });
        return { id, token, expiresAt };
      });
    },

    list: (staff, organizationId, page) =>
      database.staffTransaction(staff, async ({ em }) => {
        await findOrganization(em, organizationId);
        const { items, next } = await findPage(em, ImpersonationEntity, { where: { organizationId }, page });
        const operations = await findOperations(
          em,
          items.map(({ id }) => id),
        );
        return {
          items: items.map((impersonation) => ({
            impersonation,
            operations: operations.get(impersonation.id) ?? [],
          })),
          next,
        };
      }),

    end: (staff, impersonationId) =>
      database.staffTransaction(staff, async ({ em }) => {
        const [found] = await em.execute<{ staffId: string }[]>(sql`
          select staff_id as "staffId" from impersonations where id = ${impersonationId} for update`);
        if (!found) throw notFound('impersonation', impersonationId);
        if (found.staffId !== staff.staffId && staff.role !== 'admin') throw notOwn();
        await reportEnd(em, impersonationId);
      }),

    async endByToken(token, requestId) {
      const [open] = await database.query<{ id: string }>(sql`
        select impersonation_id as id from find_impersonation(${hashImpersonationToken(token)}, null, null, null)`);
      if (!open) return;
      await database.staffTransaction({ requestId }, async ({ em }) => {
        await em.execute(sql`select from impersonations where id = ${open.id} for update`);
        await reportEnd(em, open.id);
      });
    },
  };
}

function requireWriter({ role, person }: StaffScope): void {
  if (role !== 'admin')
    throw new AppError('permission_denied', {
      detail: 'Only the staff role admin may change something in the name of an organization.',
      fix: 'Begin the impersonation without write, or ask an admin of the service.',
    });
  requireRecentSignIn(person);
}

interface VisitedOrganization {
  id: string;
  name: string;
  isClosed: boolean;
}

async function findOrganization(em: EntityManager, organizationId: string): Promise<VisitedOrganization> {
  const [organization] = await em.execute<VisitedOrganization[]>(sql`
    select id, name, deleted_at is not null as "isClosed" from organizations where id = ${organizationId}`);
  if (!organization) throw notFound('organization', organizationId);
  return organization;
}

async function requireOpenOrganization(
  em: EntityManager,
  organizationId: string,
): Promise<VisitedOrganization> {
  const organization = await findOrganization(em, organizationId);
  if (organization.isClosed)
    throw new AppError('conflict', {
      detail: 'The organization is closed: its people do not see its data either.',
      fix: 'An owner can recover it within 30 days.',
    });
  return organization;
}

/** Informs the owners of the request, at most once a day for each staff member. */
async function requireConsent(
  transaction: Transaction,
  notifications: NotificationService,
  { staff, organization, reason }: { staff: StaffScope; organization: VisitedOrganization; reason: string },
): Promise<void> {
  const policies = await findPolicies(transaction.em, organization.id);
  const { supportAccess, supportAccessUntil: until } = policies;
  if (supportAccess === 'allowed' || (until !== null && until.getTime() > Date.now())) return;
  const day = new Date().toISOString().slice(0, 10);
  await notifications.notifyOwners(transaction, {
    organizationId: organization.id,
    template: 'staff-access-requested',
    params: { ...nameOf(organization), staffId: staff.staffId, reason },
    dedupeKey: `staff-access-requested/${organization.id}/${staff.staffId}/${day}`,
  });
  throw new AppError('policy_violation', {
    detail:
      'The organization asks for its consent, and has not given it. Its owners have been asked by email.',
    fix: 'Wait until they set support_access_until in their policies.',
    extensions: { policy: 'support_access' },
    // The email must leave.
    commitsTransaction: true,
  });
}

/** Those that a staff member begins at the same time wait for each other, so that each is counted. */
async function requireFewOpen(em: EntityManager, { staffId }: StaffScope): Promise<void> {
  await lockKey(em, 'impersonations', staffId);
  const [row] = await em.execute<{ open: number }[]>(sql`
    select count(*)::int as open from impersonations
    where staff_id = ${staffId} and ended_at is null and expires_at > now()`);
  if ((row?.open ?? 0) >= MAX_OPEN)
    throw new AppError('conflict', {
      detail: `You have ${MAX_OPEN} open impersonations.`,
      fix: 'End one first: DELETE /api/v1/admin/impersonation-sessions/{sessionId}.',
    });
}

async function insertImpersonation(
  em: EntityManager,
  { staffId, person, ip, requestId }: StaffScope,
  { organizationId, input, token }: { organizationId: string; input: NewImpersonation; token: string },
): Promise<{ id: string; expiresAt: Date }> {
  const id = newId('impersonation');
  const [row] = await em.execute<{ expiresAt: string }[]>(sql`
    insert into impersonations (id, org_id, staff_id, staff_session_id, token_hash, allows_write, reason, ip, request_id,
      expires_at, created_at)
    values (${id}, ${organizationId}, ${staffId}, ${person.sessionId}, ${hashImpersonationToken(token)},
      ${input.allowsWrite}, ${storableText(input.reason)}, ${ip}, ${requestId},
      now() + make_interval(mins => ${input.durationMinutes}), now())
    returning expires_at as "expiresAt"`);
  return { id, expiresAt: new Date(row?.expiresAt ?? Number.NaN) };
}

const nameOf = ({ id, name }: VisitedOrganization) => ({
  organizationId: id,
  organizationName: isSafeName(name) ? name : id,
});

function notOwn(): AppError {
  return new AppError('permission_denied', {
    detail: 'This impersonation is that of another staff member.',
    fix: 'Ask an admin of the service to end it.',
  });
}
