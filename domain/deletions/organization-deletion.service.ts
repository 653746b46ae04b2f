import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { recordAudit, recordOrganizationAudit } from '../audit/record-audit.ts';
import { addressNotAllowed, isAddressAllowed } from '../identity/allowed-addresses.ts';
import { organizationDeleted } from '../identity/authentication.ts';
import { type Person, requireRecentSignIn } from '../identity/person.ts';
import type { Scope } from '../identity/scope.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { closeOrganization, reopenOrganizations } from '../organizations/closed-organization.ts';
import type { Membership } from '../people/account.service.ts';
import { findPolicies } from '../policies/find-policies.ts';
import { findPolicyViolation } from '../sessions/session-policies.ts';
import type { DeletionPeriod } from './account-deletion.service.ts';
import { buildPurgeCancel, buildPurgeStart } from './purge-start.ts';
import { createDeletion, recoverDeletion } from './recoverable-deletion.ts';

export interface OrganizationDeletionOptions {
  database: Database;
  outbox: Pick<Outbox, 'enqueue'>;
  notifications: NotificationService;
  /** Throws `conflict` if a subscription has to be canceled first. */
  requireDeletable(db: Db, organizationIds: readonly string[]): Promise<void>;
}

export type OrganizationDeletionService = ReturnType<typeof createOrganizationDeletionService>;

export function createOrganizationDeletionService({
  database,
  outbox,
  notifications,
  requireDeletable,
}: OrganizationDeletionOptions) {
  return {
    /**
     * Closes the organization: its keys and sessions are refused, it receives no mail, and pending sends and deliveries
     * wait. An owner can recover it for 30 days; then a workflow purges it.
     *
     * @param confirmedName must be the organization's name.
     * @throws AppError `session_expired` unless the person signed in within ten minutes; `validation_error` for another
     * name; `organization_deleted` if another request came first; `conflict` while a subscription would continue.
     */
    async delete(scope: Scope, confirmedName: string): Promise<DeletionPeriod> {
      const { organizationId, member } = scope;
      // Keys do not hold org:delete.
      if (!member) throw notFound('organization', organizationId);
      const { person } = member;
      requireRecentSignIn(person);
      return database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        await requireName(db, organizationId, confirmedName);
        await requireDeletable(db, [organizationId]);
        const deletedAt = new Date();
        const name = await closeOrganization(db, organizationId, deletedAt);
        if (name === undefined) throw organizationDeleted(organizationId);
        await recordAudit(db, scope, {
          action: 'organization.deleted',
          resourceType: 'organization',
          resourceId: organizationId,
        });
        const deletion = await createDeletion(db, {
          kind: 'organization',
          subjectId: organizationId,
          deletedBy: person.userId,
          deletedAt,
        });
        await notifications.notifyOwners(transaction, {
          organizationId,
          template: 'organization-deleted',
          params: {
            organizationId,
            name,
            at: formatUtc(deletedAt),
            by: await readEmail(db, person.userId),
            ip: person.ip,
            recoverableUntil: formatUtc(deletion.dueAt),
          },
          dedupeKey: `organization-deleted/${deletion.deletionId}`,
        });
        outbox.enqueue(transaction, organizationId, { start: buildPurgeStart(deletion) });
        return { deletedAt, recoverableUntil: deletion.dueAt };
      });
    },

    /**
     * Reopens a closed organization. Does nothing if it is open.
     *
     * @throws AppError `not_found` if the person is not a member, or the recovery period has passed; `permission_denied`
     * unless they are an owner; `policy_violation` if its policies do not allow the session.
     */
    recover: (person: Person, organizationId: string): Promise<Membership> =>
      database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        const membership = await findMembership(db, person.userId, organizationId);
        if (!membership) throw notFound('organization', organizationId);
        if (membership.role !== 'owner') throw notAnOwner();
        await requirePolicies(db, person, organizationId);
        const reopened = { ...membership, deletedAt: null };
        if (membership.deletedAt === null) return reopened;
        const deletion = await recoverDeletion(db, organizationId);
        if (!deletion) return requireReopened(db, person, organizationId);
        await reopenOrganizations(db, [organizationId]);
        await recordOrganizationAudit(db, person, { action: 'organization.recovered', organizationId });
        await notifications.notifyOwners(transaction, {
          organizationId,
          template: 'organization-recovered',
          params: {
            organizationId,
            name: membership.name,
            at: formatUtc(new Date()),
            by: await readEmail(db, person.userId),
            ip: person.ip,
          },
          dedupeKey: `organization-recovered/${deletion.deletionId}`,
        });
        outbox.enqueue(transaction, organizationId, { signal: buildPurgeCancel(deletion) });
        return reopened;
      }),
  };
}

async function requireName(db: Db, organizationId: string, confirmedName: string): Promise<void> {
  const organization = await db
    .selectFrom('organizations')
    .select('name')
    .where('id', '=', organizationId)
    .executeTakeFirst();
  if (organization?.name === confirmedName) return;
  throw invalid(
    '/body/name',
    'must be the name of the organization',
    'Repeat the name exactly as GET /api/v1/org returns it, to confirm that you mean this organization.',
  );
}

async function readEmail(db: Db, userId: string): Promise<string> {
  const user = await db.selectFrom('users').select('email').where('id', '=', userId).executeTakeFirst();
  return user?.email ?? userId;
}

const findMembership = (db: Db, userId: string, organizationId: string): Promise<Membership | undefined> =>
  db
    .selectFrom('members as m')
    .innerJoin('organizations as o', 'o.id', 'm.org_id')
    .select(['o.id as organizationId', 'o.name', 'o.slug', 'o.status', 'm.role', 'o.deleted_at as deletedAt'])
    .where('m.user_id', '=', userId)
    .where('m.org_id', '=', organizationId)
    .executeTakeFirst();

/**
 * Requires a session that may enter the organization, so that the policies of an open organization also protect its
 * recovery.
 */
async function requirePolicies(db: Db, person: Person, organizationId: string): Promise<void> {
  const policies = await findPolicies(db, organizationId);
  if (!isAddressAllowed(person.ip, policies.allowedCidrs)) throw addressNotAllowed('organization');
  const isActiveSso = await isActiveConfiguration(db, organizationId, person.ssoConfigurationId);
  const violation = findPolicyViolation(person, { ...policies, organizationId, role: 'owner', isActiveSso });
  if (violation) throw violation;
}

async function isActiveConfiguration(
  db: Db,
  organizationId: string,
  configurationId: string | null,
): Promise<boolean> {
  const active = await db
    .selectFrom('sso_configurations')
    .select('id')
    .where('id', '=', configurationId ?? '')
    .where('org_id', '=', organizationId)
    .where('status', '=', 'active')
    .executeTakeFirst();
  return active !== undefined;
}

/** Accepts a concurrent recovery; otherwise the organization can no longer be recovered. */
async function requireReopened(db: Db, person: Person, organizationId: string): Promise<Membership> {
  const membership = await findMembership(db, person.userId, organizationId);
  if (!membership || membership.deletedAt !== null) throw notFound('organization', organizationId);
  return { ...membership, deletedAt: null };
}

function notAnOwner(): AppError {
  return new AppError('permission_denied', {
    detail: 'Only an owner can recover a closed organization.',
    fix: 'Ask an owner of the organization.',
    extensions: { permission: 'org:delete' },
  });
}
