import { sql } from 'kysely';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Db } from '../../platform/database/tables.ts';
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
import { ImpersonationEntity } from './impersonation.entity.ts';
import { createImpersonationToken, hashImpersonationToken } from './impersonation-authenticator.ts';
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
  impersonation: RowOf<typeof ImpersonationEntity>;
  /** Calls so far. */
  operations: OperationCount[];
}

export type ImpersonationService = ReturnType<typeof createImpersonationService>;

export function createImpersonationService({
  database,
  notifications,
}: {
  database: Database;
  notifications: NotificationService;
}) {
  return {
    /**
     * Begins an impersonation in an organization, and informs its owners.
     *
     * @throws AppError `not_found`; `permission_denied` for writing without the role `admin`; `session_expired` for writing
     * without a sign-in within ten minutes; `policy_violation` if the organization requires consent and has not given it, in
     * which case its owners are informed; `conflict` for a closed organization, and beyond five open impersonations.
     */
    async start(
      staff: StaffScope,
      organizationId: string,
      input: NewImpersonation,
    ): Promise<StartedImpersonation> {
      if (input.allowsWrite) requireWriter(staff);
      return database.staffTransaction(staff, async (transaction) => {
        const { db } = transaction;
        const organization = await requireOpenOrganization(db, organizationId);
        await requireConsent(transaction, notifications, { staff, organization, reason: input.reason });
        await requireFewOpen(db, staff);
        const token = createImpersonationToken();
        const started = await insertImpersonation(db, staff, { organizationId, input, token });
        const { id, expiresAt } = started;
        await recordStaffAudit(db, staff, {
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

    /** Lists the impersonations in an organization. @throws AppError `not_found`. */
    list: (
      staff: StaffScope,
      organizationId: string,
      page: PageRequest,
    ): Promise<Page<ImpersonationDetails>> =>
      database.staffTransaction(staff, async ({ db }) => {
        await findOrganization(db, organizationId);
        const { items, next } = await findPage(
          db
            .selectFrom('impersonations')
            .select(columnsOf(ImpersonationEntity))
            .where('org_id', '=', organizationId),
          'impersonations.id',
          page,
        );
        const operations = await findOperations(
          db,
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

    /**
     * Ends an impersonation with its next request. Does nothing if it has ended.
     *
     * @throws AppError `not_found`; `permission_denied` for the impersonation of another staff member, without the role
     * `admin`.
     */
    end: (staff: StaffScope, impersonationId: string): Promise<void> =>
      database.staffTransaction(staff, async ({ db }) => {
        const found = await lockImpersonation(db, impersonationId);
        if (!found) throw notFound('impersonation', impersonationId);
        if (found.staffId !== staff.staffId && staff.role !== 'admin') throw notOwn();
        await reportEnd(db, impersonationId);
      }),

    /** Ends the impersonation of a token; the token is the proof. Does nothing if there is none. */
    async endByToken(token: string, requestId: string): Promise<void> {
      const open = await database.db
        .selectFrom(
          sql<{
            impersonation_id: string;
          }>`find_impersonation(${hashImpersonationToken(token)}, null, null, null)`.as('impersonation'),
        )
        .select('impersonation_id as id')
        .executeTakeFirst();
      if (!open) return;
      await database.staffTransaction({ requestId }, async ({ db }) => {
        await lockImpersonation(db, open.id);
        await reportEnd(db, open.id);
      });
    },
  };
}

function lockImpersonation(db: Db, id: string): Promise<{ staffId: string } | undefined> {
  return db
    .selectFrom('impersonations')
    .select('staff_id as staffId')
    .where('id', '=', id)
    .forUpdate()
    .executeTakeFirst();
}

function requireWriter({ role, person }: StaffScope): void {
  if (role !== 'admin')
    throw new AppError('permission_denied', {
      detail: 'Only staff with the role admin may make changes in the name of an organization.',
      fix: 'Begin the impersonation without write, or ask an admin of the service.',
    });
  requireRecentSignIn(person);
}

interface ImpersonatedOrganization {
  id: string;
  name: string;
  isClosed: boolean;
}

async function findOrganization(db: Db, organizationId: string): Promise<ImpersonatedOrganization> {
  const organization = await db
    .selectFrom('organizations')
    .select((eb) => ['id', 'name', eb('deleted_at', 'is not', null).$castTo<boolean>().as('isClosed')])
    .where('id', '=', organizationId)
    .executeTakeFirst();
  if (!organization) throw notFound('organization', organizationId);
  return organization;
}

async function requireOpenOrganization(db: Db, organizationId: string): Promise<ImpersonatedOrganization> {
  const organization = await findOrganization(db, organizationId);
  if (organization.isClosed)
    throw new AppError('conflict', {
      detail: 'The organization is closed, so not even its members can see its data.',
      fix: 'An owner can recover it within 30 days.',
    });
  return organization;
}

/** Informs the owners of the request, at most once a day for each staff member. */
async function requireConsent(
  transaction: Transaction,
  notifications: NotificationService,
  {
    staff,
    organization,
    reason,
  }: { staff: StaffScope; organization: ImpersonatedOrganization; reason: string },
): Promise<void> {
  const policies = await findPolicies(transaction.db, organization.id);
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
      'The organization requires its consent, and has not given it. Its owners have been asked by email.',
    fix: 'Wait until they have given it in their policies (support_access_until).',
    extensions: { policy: 'support_access' },
    // The email must be sent.
    commitsTransaction: true,
  });
}

/** Serializes the starts of one staff member, so that each is counted. */
async function requireFewOpen(db: Db, { staffId }: StaffScope): Promise<void> {
  await lockKey(db, 'impersonations', staffId);
  const row = await db
    .selectFrom('impersonations')
    .select((eb) => eb.fn.countAll<number>().as('open'))
    .where('staff_id', '=', staffId)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst();
  if ((row?.open ?? 0) >= MAX_OPEN)
    throw new AppError('conflict', {
      detail: `You have ${MAX_OPEN} open impersonations.`,
      fix: 'End one first: DELETE /api/v1/admin/impersonation-sessions/{sessionId}.',
    });
}

async function insertImpersonation(
  db: Db,
  { staffId, person, ip, requestId }: StaffScope,
  { organizationId, input, token }: { organizationId: string; input: NewImpersonation; token: string },
): Promise<{ id: string; expiresAt: Date }> {
  const [started] = await db
    .insertInto('impersonations')
    .values({
      id: newId('impersonation'),
      org_id: organizationId,
      staff_id: staffId,
      staff_session_id: person.sessionId,
      token_hash: hashImpersonationToken(token),
      allows_write: input.allowsWrite,
      reason: storableText(input.reason),
      ip,
      request_id: requestId,
      expires_at: sql<Date>`now() + make_interval(mins => ${input.durationMinutes})`,
      ended_at: null,
      reported_at: null,
    })
    .returning(['id', 'expires_at as expiresAt'])
    .execute();
  if (!started) throw new Error('No impersonation was written');
  return started;
}

const nameOf = ({ id, name }: ImpersonatedOrganization) => ({
  organizationId: id,
  organizationName: isSafeName(name) ? name : id,
});

function notOwn(): AppError {
  return new AppError('permission_denied', {
    detail: 'This impersonation belongs to another staff member.',
    fix: 'Ask an admin of the service to end it.',
  });
}
