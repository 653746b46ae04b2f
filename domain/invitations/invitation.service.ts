import { type FilterQuery, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { findRow } from '../../platform/database/find-rows.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { MemberRole } from '../identity/roles.ts';
import { isSafeName } from '../identity/safe-name.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { requireGrantableRole, requireManageableRole } from '../organizations/member-authority.ts';
import { normalizeAccountAddress } from '../people/account-address.ts';
import { createOneTimeToken } from '../people/one-time-token.ts';
import { type Invitation, InvitationEntity, type InvitationStatus, statusOf } from './invitation.entity.ts';

export interface InvitationService {
  /**
   * Mails a token to an address. A pending invitation of the same address is replaced.
   *
   * @throws AppError `permission_denied` for a role above the caller's; `session_expired` for the role `owner` without a
   * sign-in within ten minutes; `already_exists` for a member; `conflict` if too
   * many are open; `rate_limited` for a second one to the address within a day; `validation_error`.
   */
  create(scope: Scope, input: { email: string; role: MemberRole }): Promise<Invitation>;
  list(scope: Scope, filter: { status?: InvitationStatus }, page: PageRequest): Promise<Page<Invitation>>;
  /** Voids the token. @throws AppError `not_found`; `conflict` unless it is pending; `permission_denied`. */
  revoke(scope: Scope, invitationId: string): Promise<Invitation>;
}

export interface InvitationOptions {
  database: Database;
  notifications: PersonNotificationService;
  ownDomains: readonly string[];
}

const LIFETIME_DAYS = 7;
const MAX_OPEN = 50;

export function createInvitationService(options: InvitationOptions): InvitationService {
  const { database, notifications, ownDomains } = options;
  return {
    create: (scope, { email: given, role }) =>
      database.transaction(scope, async (transaction) => {
        requireOrganizationWide(scope);
        const { em } = transaction;
        const { organizationId, actor } = scope;
        const email = normalizeAccountAddress(given, '/body/email', ownDomains);
        const organization = await lockOrganization(em, organizationId);
        await requireGrantableRole(em, scope, role);
        await requireNoMember(em, organizationId, email);
        await requireFewInvitations(em, organizationId, email);
        await revokePending(em, organizationId, email);
        const { token, hash } = createOneTimeToken();
        const invitation = em.create(InvitationEntity, {
          id: newId('invitation'),
          organizationId,
          email,
          role,
          tokenHash: hash,
          invitedByUserId: actor.kind === 'user' ? actor.id : null,
          invitedByKeyId: actor.kind === 'api_key' ? actor.id : null,
          expiresAt: new Date(Date.now() + LIFETIME_DAYS * 86_400_000),
          acceptedAt: null,
          acceptedByUserId: null,
          revokedAt: null,
        });
        await em.flush();
        await notifications.notify<'invitation', 'token'>(transaction, {
          organizationId,
          userId: null,
          email,
          template: 'invitation',
          params: {
            organizationName: isSafeName(organization.name) ? organization.name : organization.slug,
            role,
            inviterEmail: await findInviterEmail(em, invitation),
            expiresAt: formatUtc(invitation.expiresAt),
          },
          secrets: { token },
        });
        await audit(transaction, scope, invitation, 'created');
        return invitation;
      }),

    list: (scope, { status }, page) =>
      database.read(scope, (reader) => {
        requireOrganizationWide(scope);
        const where = [{ organizationId: scope.organizationId }, ...(status ? [conditionOf(status)] : [])];
        return findPage(reader, InvitationEntity, { where, page });
      }),

    revoke: (scope, invitationId) =>
      database.transaction(scope, async (transaction) => {
        requireOrganizationWide(scope);
        const { em } = transaction;
        const where = { id: invitationId, organizationId: scope.organizationId };
        const found = await findRow(em, InvitationEntity, { where });
        if (!found) throw notFound('invitation', invitationId);
        await requireManageableRole(em, scope, found.role);
        const revoked = await em.execute<object[]>(sql`
          update invitations set revoked_at = now()
          where id = ${invitationId} and accepted_at is null and revoked_at is null and expires_at > now()
          returning id`);
        const invitation = await findRow(em, InvitationEntity, { where });
        if (!invitation) throw notFound('invitation', invitationId);
        if (revoked.length === 0) throw notPending(invitation);
        await audit(transaction, scope, invitation, 'revoked');
        return invitation;
      }),
  };
}

/**
 * Revokes the open invitations that a person who has left the organization sent, and those to their own address, by which
 * they could come back. Runs in the caller's transaction. Returns their number.
 */
export async function revokeInvitationsOfLeaver(
  em: EntityManager,
  { organizationId, userId }: { organizationId: string; userId: string },
): Promise<number> {
  const revoked = await em.execute<object[]>(sql`
    update invitations set revoked_at = now()
    where org_id = ${organizationId}
      and (invited_by_user_id = ${userId} or email = (select email from users where id = ${userId}))
      and accepted_at is null and revoked_at is null and expires_at > now() returning id`);
  return revoked.length;
}

/** The lock makes concurrent invitations count each other. */
async function lockOrganization(
  em: EntityManager,
  organizationId: string,
): Promise<{ name: string; slug: string }> {
  const [organization] = await em.execute<{ name: string; slug: string }[]>(sql`
    select name, slug from organizations where id = ${organizationId} for no key update`);
  if (!organization) throw notFound('organization', organizationId);
  return organization;
}

async function requireNoMember(em: EntityManager, organizationId: string, email: string): Promise<void> {
  const members = await em.execute<object[]>(sql`
    select from members m join users u on u.id = m.user_id
    where m.org_id = ${organizationId} and u.email = ${email}`);
  if (members.length > 0)
    throw new AppError('already_exists', {
      detail: 'The person is a member of the organization already.',
      fix: 'Change their role: PATCH /api/v1/org/members/{user_id}.',
    });
}

/** An organization must not make the service flood mailboxes with its name. */
async function requireFewInvitations(
  em: EntityManager,
  organizationId: string,
  email: string,
): Promise<void> {
  const [row] = await em.execute<{ open: number; waitSeconds: number | null }[]>(sql`
    select count(*) filter (
        where accepted_at is null and revoked_at is null and expires_at > now() and email <> ${email})::int as open,
      max(ceil(extract(epoch from created_at + interval '1 day' - now()))) filter (
        where email = ${email} and created_at > now() - interval '1 day')::int as "waitSeconds"
    from invitations where org_id = ${organizationId} and expires_at > now()`);
  if (row && row.waitSeconds !== null)
    throw new AppError('rate_limited', {
      detail: 'This address was invited within the last 24 hours.',
      fix: 'Ask the person to look for the email, also among spam, or invite again later (see Retry-After).',
      headers: { 'retry-after': String(row.waitSeconds) },
    });
  if (row && row.open >= MAX_OPEN)
    throw new AppError('conflict', {
      detail: `The organization has ${MAX_OPEN} open invitations.`,
      fix: 'Wait until some are accepted or expire, or revoke some.',
    });
}

async function revokePending(em: EntityManager, organizationId: string, email: string): Promise<void> {
  await em.execute(sql`
    update invitations set revoked_at = now()
    where org_id = ${organizationId} and email = ${email} and accepted_at is null and revoked_at is null`);
}

async function findInviterEmail(em: EntityManager, { invitedByUserId }: Invitation): Promise<string | null> {
  if (invitedByUserId === null) return null;
  const [user] = await em.execute<{ email: string }[]>(
    sql`select email from users where id = ${invitedByUserId}`,
  );
  return user?.email ?? null;
}

function conditionOf(status: InvitationStatus): FilterQuery<Invitation> {
  const isOpen = { acceptedAt: null, revokedAt: null };
  switch (status) {
    case 'accepted':
      return { acceptedAt: { $ne: null } };
    case 'revoked':
      return { revokedAt: { $ne: null } };
    case 'pending':
      return { ...isOpen, expiresAt: { $gt: new Date() } };
    case 'expired':
      return { ...isOpen, expiresAt: { $lt: new Date() } };
  }
}

function notPending(invitation: Invitation): AppError {
  return new AppError('conflict', {
    detail: `The invitation is ${statusOf(invitation)}.`,
    fix: 'To remove a person who has accepted: DELETE /api/v1/org/members/{user_id}.',
  });
}

function audit(
  { em }: Transaction,
  scope: Scope,
  { id, role }: Invitation,
  change: 'created' | 'revoked',
): Promise<void> {
  return recordAudit(em, scope, {
    action: `invitation.${change}`,
    resourceType: 'invitation',
    resourceId: id,
    details: { role },
  });
}
