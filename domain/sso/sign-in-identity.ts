import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import { dbOf } from '../../platform/database/bridge.ts';
import { hasAuditEntry, recordAudit } from '../audit/record-audit.ts';
import { FRESH_LOGIN_MS } from '../identity/person.ts';
import { addMember, isMember } from '../organizations/add-member.ts';
import { lockAccountAddress } from '../people/account-address.ts';
import type { Client } from '../people/client.ts';
import { createUser } from '../people/create-user.ts';
import { voidSignUps } from '../people/prove-address.ts';
import type { SignedIn } from '../people/sign-in.service.ts';
import { startSession } from '../people/start-session.ts';
import { redactAddress, type SsoChecks } from './sso-checks.ts';
import type { SsoSettings } from './sso-settings.ts';
import type { SsoClaims } from './sso-transaction.entity.ts';

export type FoundAccount =
  | { kind: 'user'; userId: string }
  /** The identity is linked with no account. The user is the one whose account has the address; null if none has. */
  | { kind: 'unknown'; userId: string | null };

/**
 * Finds the account of an identity: by identity provider and subject alone. A person without an account gets one, with a
 * membership; an existing account is never taken by its address.
 *
 * @param context.mayBeNew creates an account for an unknown person without one. False while people may be known under another
 * subject, from a configuration that was replaced.
 * @throws SsoRefusal for a removed member, and for a suspended or deleted account.
 */
export async function findAccount(
  em: EntityManager,
  settings: SsoSettings,
  claims: SsoClaims,
  { checks, client, mayBeNew }: { checks: SsoChecks; client: Client; mayBeNew: boolean },
): Promise<FoundAccount> {
  const { organizationId } = settings;
  const { subject, email } = claims;
  // Of two concurrent first logins one creates the account.
  await lockKey(em, 'sso-subject', requireProvider(settings), subject);
  await lockAccountAddress(em, email);
  const known = await findKnownUser(em, settings, claims, checks);
  if (known !== undefined) return { kind: 'user', userId: known };
  const [user] = await em.execute<{ id: string }[]>(sql`select id from users where email = ${email}`);
  if (user) {
    await requireActive(em, user.id, checks);
    await requireNotRemoved(em, { organizationId, userId: user.id }, checks);
  }
  if (user || !mayBeNew) return { kind: 'unknown', userId: user?.id ?? null };
  const userId = createUser(em, {
    email,
    name: claims.name,
    passwordHash: null,
    emailVerifiedAt: new Date(),
  });
  await em.flush();
  await voidSignUps(em, email);
  await addIdentity(em, settings, { claims, userId });
  await joinOrganization(em, settings, { userId, client });
  checks.pass('account', `new account ${redactAddress(email)}`);
  return { kind: 'user', userId };
}

/**
 * Finds the member whom the identity provider knows by the subject, whatever the address is now.
 *
 * @throws SsoRefusal for a removed member, and for a suspended or deleted account.
 */
export async function findKnownUser(
  em: EntityManager,
  settings: SsoSettings,
  { subject, email }: SsoClaims,
  checks: SsoChecks,
): Promise<string | undefined> {
  const [identity] = await em.execute<{ userId: string }[]>(sql`
    update sso_identities set email = ${email}, last_login_at = now()
    where provider_id = ${requireProvider(settings)} and subject = ${subject}
    returning user_id as "userId"`);
  if (!identity) return undefined;
  const { userId } = identity;
  await requireActive(em, userId, checks);
  const isStillMember = await isMember(dbOf(em), settings.organizationId, userId);
  checks.require('account', isStillMember, isStillMember ? 'a member' : 'no member any more', 'a member');
  return userId;
}

/** Set by the first activation: logins and links need an active or replaced configuration. */
function requireProvider({ id, providerId }: Pick<SsoSettings, 'id' | 'providerId'>): string {
  if (providerId === null) throw new Error(`The SSO configuration ${id} has never been active`);
  return providerId;
}

/** @throws AppError `invalid_credentials` for a suspended or deleted account. */
export async function signInIdentity(
  em: EntityManager,
  settings: Pick<SsoSettings, 'id'>,
  { userId, authenticatedAt }: { userId: string; authenticatedAt: Date | null },
  client: Client,
): Promise<SignedIn> {
  const signIn = await startSession(em, {
    userId,
    method: 'sso',
    ssoConfigurationId: settings.id,
    authenticatedAt: clampToRecent(authenticatedAt),
    ...client,
  });
  return { userId, signIn };
}

/**
 * A login may rest on a session that the person has had at the identity provider for days. It then is no fresh login here,
 * but no older than that either, because policies limit the age of sessions of this service.
 */
function clampToRecent(authenticatedAt: Date | null, now = Date.now()): Date {
  const notFresh = now - FRESH_LOGIN_MS - 1_000;
  return new Date(Math.min(now, Math.max(authenticatedAt?.getTime() ?? 0, notFresh)));
}

export async function addIdentity(
  em: EntityManager,
  settings: Pick<SsoSettings, 'id' | 'organizationId' | 'providerId'>,
  { claims: { subject, email }, userId }: { claims: SsoClaims; userId: string },
): Promise<boolean> {
  const added = await em.execute<object[]>(sql`
    insert into sso_identities (provider_id, subject, org_id, user_id, email, last_login_at, created_at)
    values (${requireProvider(settings)}, ${subject}, ${settings.organizationId}, ${userId}, ${email}, now(), now())
    on conflict do nothing returning user_id`);
  return added.length > 0;
}

/** Makes the person a member with the configuration's default role, unless they are one. */
export async function joinOrganization(
  em: EntityManager,
  { id, organizationId, defaultRole }: SsoSettings,
  { userId, client }: { userId: string; client: Client },
): Promise<void> {
  if (!(await addMember(dbOf(em), { organizationId, userId, role: defaultRole }))) return;
  await recordAudit(
    em,
    { organizationId, actor: { kind: 'user', id: userId }, ip: client.ip, requestId: client.requestId },
    {
      action: 'member.joined',
      resourceType: 'user',
      resourceId: userId,
      details: { role: defaultRole, sso_configuration_id: id },
    },
  );
}

/** A person whom the organization removed does not come back by SSO, but by an invitation. */
export async function requireNotRemoved(
  em: EntityManager,
  { organizationId, userId }: { organizationId: string; userId: string },
  checks: SsoChecks,
): Promise<void> {
  const wasRemoved =
    !(await isMember(dbOf(em), organizationId, userId)) &&
    (await hasAuditEntry(em, { organizationId, action: 'member.removed', resourceId: userId }));
  checks.require('account', !wasRemoved, wasRemoved ? 'a removed member' : 'not removed', 'not removed');
}

async function requireActive(em: EntityManager, userId: string, checks: SsoChecks): Promise<void> {
  const rows = await em.execute<object[]>(
    sql`select from users where id = ${userId} and status = 'active' and deleted_at is null`,
  );
  const isActive = rows.length > 0;
  checks.require(
    'account',
    isActive,
    isActive ? 'an active account' : 'a suspended or deleted account',
    'an active account',
  );
}
