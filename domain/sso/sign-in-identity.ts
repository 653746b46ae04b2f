import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { lockKey } from '../../platform/database/advisory-lock.ts';
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
  /** The address has an account that is not linked with the identity. */
  | { kind: 'account_exists'; userId: string };

/**
 * Finds the account of an identity: by issuer and subject alone. A person without an account gets one, with a membership;
 * an existing account is never taken by its address.
 *
 * @throws SsoRefusal for a removed member, and for a suspended or deleted account.
 */
export async function findAccount(
  em: EntityManager,
  settings: SsoSettings,
  claims: SsoClaims,
  { checks, client }: { checks: SsoChecks; client: Client },
): Promise<FoundAccount> {
  const { id: configurationId, organizationId } = settings;
  const { issuer, subject, email } = claims;
  // Of two concurrent first logins one creates the account.
  await lockKey(em, 'sso-subject', configurationId, issuer, subject);
  await lockAccountAddress(em, email);
  const [identity] = await em.execute<{ userId: string }[]>(sql`
    update sso_identities set email = ${email}, last_login_at = now()
    where configuration_id = ${configurationId} and issuer = ${issuer} and subject = ${subject}
    returning user_id as "userId"`);
  if (identity) {
    const { userId } = identity;
    checks.require('account', await isActiveUser(em, userId), 'account', 'an account that is not suspended');
    checks.require('account', await isMember(em, organizationId, userId), 'no member any more', 'a member');
    return { kind: 'user', userId };
  }
  const [user] = await em.execute<{ id: string }[]>(sql`select id from users where email = ${email}`);
  if (user) {
    checks.require('account', await isActiveUser(em, user.id), 'account', 'an account that is not suspended');
    await requireNotRemoved(em, { organizationId, userId: user.id }, checks);
    return { kind: 'account_exists', userId: user.id };
  }
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
  { id, organizationId }: Pick<SsoSettings, 'id' | 'organizationId'>,
  { claims: { issuer, subject, email }, userId }: { claims: SsoClaims; userId: string },
): Promise<boolean> {
  const added = await em.execute<object[]>(sql`
    insert into sso_identities (configuration_id, issuer, subject, org_id, user_id, email, last_login_at, created_at)
    values (${id}, ${issuer}, ${subject}, ${organizationId}, ${userId}, ${email}, now(), now())
    on conflict do nothing returning user_id`);
  return added.length > 0;
}

/** Makes the person a member with the configuration's default role, unless they are one. */
export async function joinOrganization(
  em: EntityManager,
  { id, organizationId, defaultRole }: SsoSettings,
  { userId, client }: { userId: string; client: Client },
): Promise<void> {
  if (!(await addMember(em, { organizationId, userId, role: defaultRole }))) return;
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
    !(await isMember(em, organizationId, userId)) &&
    (await hasAuditEntry(em, { organizationId, action: 'member.removed', resourceId: userId }));
  checks.require('account', !wasRemoved, wasRemoved ? 'a removed member' : 'an account', 'not removed');
}

async function isActiveUser(em: EntityManager, userId: string): Promise<boolean> {
  const rows = await em.execute<object[]>(
    sql`select from users where id = ${userId} and status = 'active' and deleted_at is null`,
  );
  return rows.length > 0;
}
