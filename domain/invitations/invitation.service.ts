import { type Expression, type SqlBool, sql } from 'kysely';
import { createOneTimeToken } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { MemberRole } from '../identity/roles.ts';
import { isSafeName } from '../identity/safe-name.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import { requireNoAlarm } from '../messages/injection-alarms.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { requireGrantableRole, requireManageableRole } from '../organizations/members.ts';
import { normalizeAccountAddress } from '../people/account-address.ts';
import { type Invitation, InvitationEntity, type InvitationStatus, statusOf } from './invitation.entity.ts';

export type InvitationService = ReturnType<typeof createInvitationService>;

export interface InvitationOptions {
  database: Database;
  notifications: PersonNotificationService;
  ownDomains: readonly string[];
}

const LIFETIME_DAYS = 7;
const MAX_OPEN = 50;

const NOW = sql<Date>`now()`;
const IS_PENDING = sql<boolean>`accepted_at is null and revoked_at is null and expires_at > now()`;

export function createInvitationService(options: InvitationOptions) {
  const { database, notifications, ownDomains } = options;
  return {
    /**
     * Mails a token to an address. A pending invitation of the same address is replaced.
     *
     * @throws AppError `permission_denied` for a role above the caller's; `session_expired` for the role `owner` without a
     * sign-in within ten minutes; `already_exists` for a member; `conflict` if too many are open; `rate_limited` for a
     * second invitation to the address within a day; `policy_violation` for a key after an injection alarm; `validation_error`.
     */
    create: (
      scope: Scope,
      { email: given, role }: { email: string; role: MemberRole },
    ): Promise<Invitation> =>
      database.transaction(scope, async (transaction) => {
        requireOrganizationWide(scope);
        const { db } = transaction;
        const { organizationId } = scope;
        const email = normalizeAccountAddress(given, '/body/email', ownDomains);
        const organization = await lockNamedOrganization(db, organizationId);
        await requireGrantableRole(db, scope, role);
        await requireNoAlarm(db, scope, 'invites people');
        await requireNoMember(db, organizationId, email);
        await requireFewInvitations(db, organizationId, email);
        await revokePending(db, organizationId, email);
        const { token, hash } = createOneTimeToken();
        const invitation = await insertInvitation(db, scope, { email, role, tokenHash: hash });
        await notifications.notify<'invitation', 'token'>(transaction, {
          organizationId,
          userId: null,
          email,
          template: 'invitation',
          params: {
            organizationName: isSafeName(organization.name) ? organization.name : organization.slug,
            role,
            inviterEmail: await findInviterEmail(db, invitation),
            expiresAt: formatUtc(invitation.expiresAt),
          },
          secrets: { token },
        });
        await audit(transaction, scope, invitation, 'created');
        return invitation;
      }),

    list: (
      scope: Scope,
      { status }: { status?: InvitationStatus },
      page: PageRequest,
    ): Promise<Page<Invitation>> =>
      database.read(scope, ({ db }) => {
        requireOrganizationWide(scope);
        const invitations = db
          .selectFrom('invitations')
          .select(columnsOf(InvitationEntity))
          .where('org_id', '=', scope.organizationId)
          .where(status === undefined ? sql<boolean>`true` : conditionOf(status));
        return findPage(invitations, 'invitations.id', page);
      }),

    /** Voids the token. @throws AppError `not_found`; `conflict` unless it is pending; `permission_denied`. */
    revoke: (scope: Scope, invitationId: string): Promise<Invitation> =>
      database.transaction(scope, async (transaction) => {
        requireOrganizationWide(scope);
        const { db } = transaction;
        const found = await findInvitation(db, scope, invitationId);
        if (!found) throw notFound('invitation', invitationId);
        await requireManageableRole(db, scope, found.role);
        const invitation = await revokeInvitation(db, invitationId);
        if (!invitation) throw notPending((await findInvitation(db, scope, invitationId)) ?? found);
        await audit(transaction, scope, invitation, 'revoked');
        return invitation;
      }),
  };
}

/**
 * Revokes the open invitations sent by a person who has left the organization, and those to their own address, with which
 * they could rejoin. Runs in the caller's transaction. Returns their number.
 */
export async function revokeInvitationsOfLeaver(
  db: Db,
  { organizationId, userId }: { organizationId: string; userId: string },
): Promise<number> {
  const revoked = await db
    .updateTable('invitations')
    .set({ revoked_at: NOW })
    .where('org_id', '=', organizationId)
    .where((eb) =>
      eb.or([
        eb('invited_by_user_id', '=', userId),
        eb('email', '=', eb.selectFrom('users').select('email').where('id', '=', userId)),
      ]),
    )
    .where(IS_PENDING)
    .returning('id')
    .execute();
  return revoked.length;
}

function insertInvitation(
  db: Db,
  { organizationId, actor }: Scope,
  { email, role, tokenHash }: Pick<Invitation, 'email' | 'role' | 'tokenHash'>,
): Promise<Invitation> {
  return db
    .insertInto('invitations')
    .values({
      id: newId('invitation'),
      org_id: organizationId,
      email,
      role,
      token_hash: tokenHash,
      invited_by_user_id: actor.kind === 'user' ? actor.id : null,
      invited_by_key_id: actor.kind === 'api_key' ? actor.id : null,
      expires_at: new Date(Date.now() + LIFETIME_DAYS * 86_400_000),
      accepted_at: null,
      accepted_by_user_id: null,
      revoked_at: null,
    })
    .returning(columnsOf(InvitationEntity))
    .executeTakeFirstOrThrow(() => new Error('The invitation was not stored'));
}

function findInvitation(
  db: Db,
  { organizationId }: Scope,
  invitationId: string,
): Promise<Invitation | undefined> {
  return db
    .selectFrom('invitations')
    .select(columnsOf(InvitationEntity))
    .where('id', '=', invitationId)
    .where('org_id', '=', organizationId)
    .executeTakeFirst();
}

/** Returns undefined unless the invitation was pending. */
function revokeInvitation(db: Db, invitationId: string): Promise<Invitation | undefined> {
  return db
    .updateTable('invitations')
    .set({ revoked_at: NOW })
    .where('id', '=', invitationId)
    .where(IS_PENDING)
    .returning(columnsOf(InvitationEntity))
    .executeTakeFirst();
}

/** The lock makes concurrent invitations count each other. */
function lockNamedOrganization(db: Db, organizationId: string): Promise<{ name: string; slug: string }> {
  return db
    .selectFrom('organizations')
    .select(['name', 'slug'])
    .where('id', '=', organizationId)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow(() => notFound('organization', organizationId));
}

async function requireNoMember(db: Db, organizationId: string, email: string): Promise<void> {
  const member = await db
    .selectFrom('members')
    .innerJoin('users', 'users.id', 'members.user_id')
    .select('users.id')
    .where('members.org_id', '=', organizationId)
    .where('users.email', '=', email)
    .executeTakeFirst();
  if (member)
    throw new AppError('already_exists', {
      detail: 'The person is already a member of the organization.',
      fix: 'Change their role: PATCH /api/v1/org/members/{user_id}).',
    });
}

/** An organization must not make the service flood mailboxes with its name. */
async function requireFewInvitations(db: Db, organizationId: string, email: string): Promise<void> {
  const row = await db
    .selectFrom('invitations')
    .select((eb) => [
      eb.fn.countAll<number>().filterWhere(IS_PENDING).filterWhere('email', '<>', email).as('open'),
      eb.fn
        .max(sql<number | null>`ceil(extract(epoch from created_at + interval '1 day' - now()))::int`)
        .filterWhere('email', '=', email)
        .filterWhere('created_at', '>', sql<Date>`now() - interval '1 day'`)
        .as('waitSeconds'),
    ])
    .where('org_id', '=', organizationId)
    .where('expires_at', '>', NOW)
    .executeTakeFirst();
  if (row && row.waitSeconds !== null)
    throw new AppError('rate_limited', {
      detail: 'This address was invited within the last 24 hours.',
      fix: 'Ask the person to look for the email, also among spam, or invite again later (see Retry-After).',
      headers: { 'retry-after': String(row.waitSeconds) },
    });
  if (row && row.open >= MAX_OPEN)
    throw new AppError('conflict', {
      detail: `The organization has ${MAX_OPEN} open invitations.`,
      fix: 'Wait until some are accepted or expire, or revoke some: POST /api/v1/org/invitations/{id}/revoke.',
    });
}

async function revokePending(db: Db, organizationId: string, email: string): Promise<void> {
  await db
    .updateTable('invitations')
    .set({ revoked_at: NOW })
    .where('org_id', '=', organizationId)
    .where('email', '=', email)
    .where('accepted_at', 'is', null)
    .where('revoked_at', 'is', null)
    .execute();
}

async function findInviterEmail(db: Db, { invitedByUserId }: Invitation): Promise<string | null> {
  if (invitedByUserId === null) return null;
  const user = await db
    .selectFrom('users')
    .select('email')
    .where('id', '=', invitedByUserId)
    .executeTakeFirst();
  return user?.email ?? null;
}

function conditionOf(status: InvitationStatus): Expression<SqlBool> {
  switch (status) {
    case 'accepted':
      return sql`accepted_at is not null`;
    case 'revoked':
      return sql`revoked_at is not null`;
    case 'pending':
      return IS_PENDING;
    case 'expired':
      return sql`accepted_at is null and revoked_at is null and expires_at < now()`;
  }
}

function notPending(invitation: Invitation): AppError {
  return new AppError('conflict', {
    detail: `The invitation is ${statusOf(invitation)}.`,
    fix: 'A person who has accepted is a member: remove the member (DELETE /api/v1/org/members/{user_id}).',
  });
}

function audit(
  { db }: Transaction,
  scope: Scope,
  { id, role }: Invitation,
  change: 'created' | 'revoked',
): Promise<void> {
  return recordAudit(db, scope, {
    action: `invitation.${change}`,
    resourceType: 'invitation',
    resourceId: id,
    details: { role },
  });
}
