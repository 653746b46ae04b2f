import { sql } from 'kysely';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Db } from '../../platform/database/tables.ts';
import { hasAuditEntry, recordAudit } from '../audit/record-audit.ts';
import { type Client, FRESH_LOGIN_MS } from '../identity/person.ts';
import { addMember, isMember } from '../organizations/members.ts';
import { lockAccountAddress, voidSignUps } from '../people/account-address.ts';
import type { SignedIn } from '../people/sign-in.service.ts';
import { startSession } from '../people/start-session.ts';
import { createUser } from '../people/users.ts';
import { redactAddress, type SsoChecks } from './sso-checks.ts';
import type { SsoClaims } from './sso-login.entity.ts';
import type { SsoSettings } from './sso-settings.ts';

export type FoundAccount =
  | { kind: 'user'; userId: string }
  /** The identity is linked with no account. `userId` is the account with the address; null if there is none. */
  | { kind: 'unknown'; userId: string | null };

/**
 * Finds the account of an identity by identity provider and subject alone. A person without an account gets one, with a
 * membership; an address alone never gives access to an existing account.
 *
 * @param context.mayBeNew whether an unknown person without an account gets one. False while people may be known under
 * another subject, from a replaced configuration.
 * @throws SsoRefusal for a removed member, and for a suspended or deleted account.
 */
export async function findAccount(
  db: Db,
  settings: SsoSettings,
  claims: SsoClaims,
  { checks, client, mayBeNew }: { checks: SsoChecks; client: Client; mayBeNew: boolean },
): Promise<FoundAccount> {
  const { organizationId } = settings;
  const { subject, email } = claims;
  // Of two concurrent first logins, only one creates the account.
  await lockKey(db, 'sso-subject', requireProvider(settings), subject);
  await lockAccountAddress(db, email);
  const known = await findKnownUser(db, settings, claims, checks);
  if (known !== undefined) return { kind: 'user', userId: known };
  const user = await db.selectFrom('users').select('id').where('email', '=', email).executeTakeFirst();
  if (user) {
    await requireActive(db, user.id, checks);
    await requireNotRemoved(db, { organizationId, userId: user.id }, checks);
  }
  if (user || !mayBeNew) return { kind: 'unknown', userId: user?.id ?? null };
  const userId = await createUser(db, {
    email,
    name: claims.name,
    passwordHash: null,
    emailVerifiedAt: new Date(),
  });
  await voidSignUps(db, email);
  await addIdentity(db, settings, { claims, userId });
  await joinOrganization(db, settings, { userId, client });
  checks.pass('account', `new account ${redactAddress(email)}`);
  return { kind: 'user', userId };
}

/**
 * Finds the member whom the identity provider knows by the subject, even if the address has changed.
 *
 * @throws SsoRefusal for a removed member, and for a suspended or deleted account.
 */
export async function findKnownUser(
  db: Db,
  settings: SsoSettings,
  { subject, email }: SsoClaims,
  checks: SsoChecks,
): Promise<string | undefined> {
  const identity = await db
    .updateTable('sso_identities')
    .set({ email, last_login_at: sql<Date>`now()` })
    .where('provider_id', '=', requireProvider(settings))
    .where('subject', '=', subject)
    .returning('user_id as userId')
    .executeTakeFirst();
  if (!identity) return undefined;
  const { userId } = identity;
  await requireActive(db, userId, checks);
  const isStillMember = await isMember(db, settings.organizationId, userId);
  checks.require('account', isStillMember, isStillMember ? 'a member' : 'no member any more', 'a member');
  return userId;
}

/** The first activation sets it, and logins and links need an active or replaced configuration. */
function requireProvider({ id, providerId }: Pick<SsoSettings, 'id' | 'providerId'>): string {
  if (providerId === null) throw new Error(`The SSO configuration ${id} has never been active`);
  return providerId;
}

/** @throws AppError `invalid_credentials` for a suspended or deleted account. */
export async function signInIdentity(
  db: Db,
  settings: Pick<SsoSettings, 'id'>,
  { userId, authenticatedAt }: { userId: string; authenticatedAt: Date | null },
  client: Client,
): Promise<SignedIn> {
  const signIn = await startSession(db, {
    userId,
    method: 'sso',
    ssoConfigurationId: settings.id,
    authenticatedAt: clampToRecent(authenticatedAt),
    ...client,
  });
  return { userId, signIn };
}

/**
 * A login may rest on a session that the person has had at the identity provider for days. Such a login does not count as
 * fresh. It also does not count as older than that limit, because policies limit the age of this service's sessions.
 */
function clampToRecent(authenticatedAt: Date | null, now = Date.now()): Date {
  const notFresh = now - FRESH_LOGIN_MS - 1_000;
  return new Date(Math.min(now, Math.max(authenticatedAt?.getTime() ?? 0, notFresh)));
}

export async function addIdentity(
  db: Db,
  settings: Pick<SsoSettings, 'id' | 'organizationId' | 'providerId'>,
  { claims: { subject, email }, userId }: { claims: SsoClaims; userId: string },
): Promise<boolean> {
  const added = await db
    .insertInto('sso_identities')
    .values({
      provider_id: requireProvider(settings),
      subject,
      org_id: settings.organizationId,
      user_id: userId,
      email,
      last_login_at: sql<Date>`now()`,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('user_id')
    .executeTakeFirst();
  return added !== undefined;
}

/** Makes the person a member with the configuration's default role, unless they are one. */
export async function joinOrganization(
  db: Db,
  { id, organizationId, defaultRole }: SsoSettings,
  { userId, client }: { userId: string; client: Client },
): Promise<void> {
  if (!(await addMember(db, { organizationId, userId, role: defaultRole }))) return;
  await recordAudit(
    db,
    { organizationId, actor: { kind: 'user', id: userId }, ip: client.ip, requestId: client.requestId },
    {
      action: 'member.joined',
      resourceType: 'user',
      resourceId: userId,
      details: { role: defaultRole, sso_configuration_id: id },
    },
  );
}

/** A person whom the organization removed cannot come back by SSO, only by an invitation. */
export async function requireNotRemoved(
  db: Db,
  { organizationId, userId }: { organizationId: string; userId: string },
  checks: SsoChecks,
): Promise<void> {
  const wasRemoved =
    !(await isMember(db, organizationId, userId)) &&
    (await hasAuditEntry(db, { organizationId, action: 'member.removed', resourceId: userId }));
  checks.require('account', !wasRemoved, wasRemoved ? 'a removed member' : 'not removed', 'not removed');
}

async function requireActive(db: Db, userId: string, checks: SsoChecks): Promise<void> {
  const user = await db
    .selectFrom('users')
    .select('id')
    .where('id', '=', userId)
    .where('status', '=', 'active')
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  const isActive = user !== undefined;
  checks.require(
    'account',
    isActive,
    isActive ? 'an active account' : 'a suspended or deleted account',
    'an active account',
  );
}
