import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import type { SerializedRow } from '../../platform/database/serialized-row.ts';
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
import { createDeletion, recoverDeletion } from './deletion-rows.ts';
import { buildPurgeCancel, buildPurgeStart } from './purge-start.ts';

export interface OrganizationDeletionService {
  /**
   * Closes the organization: its keys and sessions are refused, it receives no mail, and what was to be sent or delivered
   * waits. An owner can recover it for 30 days, then a workflow purges it.
   *
   * @param confirmedName must be the organization's name.
   * @throws AppError `session_expired` unless the person signed in within ten minutes; `validation_error` for another name;
   * `organization_deleted` if another request was first; `conflict` while a subscription would go on.
   */
  delete(scope: Scope, confirmedName: string): Promise<DeletionPeriod>;
  /**
   * Opens a closed organization again, as it was. Does nothing if it is open.
   *
   * @throws AppError `not_found` if the person is not its member, or its recovery period has passed; `permission_denied`
   * unless they are an owner; `policy_violation` if its policies do not allow the session.
   */
  recover(person: Person, organizationId: string): Promise<Membership>;
}

export interface OrganizationDeletionOptions {
  database: Database;
  outbox: Pick<Outbox, 'enqueue'>;
  notifications: NotificationService;
  /** Throws `conflict` if something outside of the service has to end first: a subscription. */
  requireDeletable(em: EntityManager, organizationIds: readonly string[]): Promise<void>;
}

export function createOrganizationDeletionService({
  database,
  outbox,
  notifications,
  requireDeletable,
}: OrganizationDeletionOptions): OrganizationDeletionService {
  return {
    async delete(scope, confirmedName) {
      const { organizationId, member } = scope;
      // Keys do not hold org:delete.
      if (!member) throw notFound('organization', organizationId);
      const { person } = member;
      requireRecentSignIn(person);
      return database.peopleTransaction(async (transaction) => {
        const { em } = transaction;
        await requireName(em, organizationId, confirmedName);
        await requireDeletable(em, [organizationId]);
        const deletedAt = new Date();
        const name = await closeOrganization(em, organizationId, deletedAt);
        if (name === undefined) throw organizationDeleted(organizationId);
        await recordAudit(em, scope, {
          action: 'organization.deleted',
          resourceType: 'organization',
          resourceId: organizationId,
        });
        const deletion = await createDeletion(em, {
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
            by: await readEmail(em, person.userId),
            ip: person.ip,
            recoverableUntil: formatUtc(deletion.dueAt),
          },
          dedupeKey: `organization-deleted/${deletion.deletionId}`,
        });
        outbox.enqueue(transaction, organizationId, { start: buildPurgeStart(deletion) });
        return { deletedAt, recoverableUntil: deletion.dueAt };
      });
    },

    recover: (person, organizationId) =>
      database.peopleTransaction(async (transaction) => {
        const { em } = transaction;
        const membership = await findMembership(em, person.userId, organizationId);
        if (!membership) throw notFound('organization', organizationId);
        if (membership.role !== 'owner') throw notAnOwner();
        await requirePolicies(em, person, organizationId);
        const reopened = { ...membership, deletedAt: null };
        if (membership.deletedAt === null) return reopened;
        const deletion = await recoverDeletion(em, organizationId);
        if (!deletion) return requireReopened(em, person, organizationId);
        await reopenOrganizations(em, [organizationId]);
        await recordOrganizationAudit(em, person, { action: 'organization.recovered', organizationId });
        await notifications.notifyOwners(transaction, {
          organizationId,
          template: 'organization-recovered',
          params: {
            organizationId,
            name: membership.name,
            at: formatUtc(new Date()),
            by: await readEmail(em, person.userId),
            ip: person.ip,
          },
          dedupeKey: `organization-recovered/${deletion.deletionId}`,
        });
        outbox.enqueue(transaction, organizationId, { signal: buildPurgeCancel(deletion) });
        return reopened;
      }),
  };
}

async function requireName(em: EntityManager, organizationId: string, confirmedName: string): Promise<void> {
  const [organization] = await em.execute<{ name: string }[]>(
    sql`select name from organizations where id = ${organizationId}`,
  );
  if (organization?.name === confirmedName) return;
  throw invalid(
    '/body/name',
    'must be the name of the organization',
    'Repeat the name exactly as GET /api/v1/org returns it, to confirm that you mean this organization.',
  );
}

async function readEmail(em: EntityManager, userId: string): Promise<string> {
  const [user] = await em.execute<{ email: string }[]>(sql`select email from users where id = ${userId}`);
  return user?.email ?? userId;
}

async function findMembership(
  em: EntityManager,
  userId: string,
  organizationId: string,
): Promise<SerializedRow<Membership> | undefined> {
  const [membership] = await em.execute<SerializedRow<Membership>[]>(sql`
    select o.id as "organizationId", o.name, o.slug, m.role, o.deleted_at as "deletedAt"
    from members m join organizations o on o.id = m.org_id
    where m.user_id = ${userId} and m.org_id = ${organizationId}`);
  return membership;
}

/** The session must be one that may enter the organization: what protects it while it is open protects its recovery. */
async function requirePolicies(em: EntityManager, person: Person, organizationId: string): Promise<void> {
  const policies = await findPolicies(em, organizationId);
  if (!isAddressAllowed(person.ip, policies.allowedCidrs)) throw addressNotAllowed('organization');
  const isActiveSso = await isActiveConfiguration(em, organizationId, person.ssoConfigurationId);
  const violation = findPolicyViolation(person, { ...policies, organizationId, role: 'owner', isActiveSso });
  if (violation) throw violation;
}

async function isActiveConfiguration(
  em: EntityManager,
  organizationId: string,
  configurationId: string | null,
): Promise<boolean> {
  const active = await em.execute<object[]>(sql`
    select from sso_configurations
    where id = ${configurationId ?? ''} and org_id = ${organizationId} and status = 'active'`);
  return active.length > 0;
}

/** Another request has recovered the organization meanwhile, or it can no longer be recovered. */
async function requireReopened(
  em: EntityManager,
  person: Person,
  organizationId: string,
): Promise<Membership> {
  const membership = await findMembership(em, person.userId, organizationId);
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
