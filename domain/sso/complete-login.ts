import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { type SecretBox, sha256 } from '../../platform/crypto.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import type { Client } from '../people/client.ts';
import type { SignedIn } from '../people/sign-in.service.ts';
import { announceSetupTest } from './announce-setup-test.ts';
import { checkIdentity, type StatedIdentity } from './check-identity.ts';
import type { SamlIdentity } from './saml/saml-assertion.ts';
import {
  addIdentity,
  findAccount,
  joinOrganization,
  requireNotRemoved,
  signInIdentity,
} from './sign-in-identity.ts';
import { recordSsoAttempt } from './sso-attempts.ts';
import {
  createSsoChecks,
  type SsoCheck,
  type SsoCheckName,
  type SsoChecks,
  SsoRefusal,
  ssoFailed,
} from './sso-checks.ts';
import type { SsoSettings } from './sso-settings.ts';
import type { SsoClaims, SsoPurpose } from './sso-transaction.entity.ts';
import {
  browserTokenOf,
  createSsoToken,
  createSsoTransaction,
  type UsedSsoTransaction,
} from './sso-transactions.ts';

export type SsoOutcome =
  | { kind: 'signed_in'; signedIn: SignedIn; redirectTo: string }
  /** A test passed: the configuration can be activated. Nothing else has changed. */
  | { kind: 'tested'; configurationId: string; checks: SsoCheck[]; redirectTo: string }
  /** The address has an account. A fresh sign-in to it and the token link both, within ten minutes. */
  | { kind: 'account_exists'; linkToken: string }
  /** The identity provider began. The person has to agree: else other sites could sign browsers in to their own account. */
  | { kind: 'confirm'; confirmToken: string; browserToken: string; organizationName: string; email: string };

export interface CompletionOptions {
  database: Database;
  secretBox: SecretBox;
  notifications: PersonNotificationService;
  ownerNotifications: NotificationService;
  /** Domains in which every tenant can receive mail. */
  ownDomains: readonly string[];
}

/** Runs a step of a login. A refusal is recorded with its checks, and becomes the error that the client sees. */
export async function recordRefusals<T>(
  { database }: Pick<CompletionOptions, 'database'>,
  { id }: Pick<SsoSettings, 'id'>,
  purpose: SsoPurpose,
  work: (checks: SsoChecks) => Promise<T>,
  toError: (check: SsoCheckName, checks: readonly SsoCheck[]) => AppError = ssoFailed,
): Promise<T> {
  const checks = createSsoChecks();
  try {
    return await work(checks);
  } catch (error) {
    if (!(error instanceof SsoRefusal)) throw error;
    await database.peopleTransaction(({ em }) =>
      recordSsoAttempt(em, { configurationId: id, purpose, succeeded: false, checks: checks.all }),
    );
    throw toError(error.check, checks.all);
  }
}

export interface ProvedLogin {
  settings: SsoSettings;
  transaction: Pick<UsedSsoTransaction<unknown>, 'purpose' | 'redirectTo'>;
  identity: StatedIdentity | SamlIdentity;
  browserToken: string | undefined;
}

/** What follows when the identity provider's answer is proved to be genuine and meant for this browser. */
export function complete(
  options: CompletionOptions,
  { settings, transaction, identity, browserToken }: ProvedLogin,
  { checks, client }: { checks: SsoChecks; client: Client },
): Promise<SsoOutcome> {
  const { database, secretBox, ownDomains } = options;
  const { purpose, redirectTo } = transaction;
  return database.peopleTransaction(async (context): Promise<SsoOutcome> => {
    const { em } = context;
    await useAssertion(em, settings, identity, checks);
    const claims = await checkIdentity(em, settings, { identity, ownDomains }, checks);
    const attempt = { configurationId: settings.id, purpose, succeeded: true, checks: checks.all };
    if (purpose === 'test') {
      const tested = await em.execute<object[]>(sql`
        update sso_configurations set tested_at = now(),
          status = case when status in ('draft', 'disabled') then 'tested' else status end
        where id = ${settings.id} and version = ${settings.version} returning id`);
      await recordSsoAttempt(em, attempt);
      if (tested.length > 0) await announceSetupTest(context, options, settings);
      return { kind: 'tested', configurationId: settings.id, checks: checks.all, redirectTo };
    }
    const account = await findAccount(em, settings, claims, { checks, client });
    await recordSsoAttempt(em, attempt);
    if (account.kind === 'user') {
      const { authenticatedAt } = identity;
      const signedIn = await signInIdentity(em, settings, { ...account, authenticatedAt }, client);
      return { kind: 'signed_in', signedIn, redirectTo };
    }
    const linkToken = createSsoToken();
    await createSsoTransaction(em, secretBox, linkToken, {
      settings,
      purpose: 'link',
      browserToken: browserTokenOf(browserToken),
      redirectTo,
      userId: account.userId,
      claims,
    });
    return { kind: 'account_exists', linkToken };
  }, client.requestId);
}

/** Asks the person before a login that the identity provider began. */
export function askToConfirm(
  { database, secretBox, ownDomains }: CompletionOptions,
  login: {
    settings: SsoSettings;
    identity: SamlIdentity;
    browserToken: string | undefined;
    redirectTo: string;
  },
  checks: SsoChecks,
): Promise<SsoOutcome> {
  const { settings, identity, redirectTo } = login;
  const browserToken = browserTokenOf(login.browserToken);
  const confirmToken = createSsoToken();
  return database.peopleTransaction(async ({ em }): Promise<SsoOutcome> => {
    await useAssertion(em, settings, identity, checks);
    const claims = await checkIdentity(em, settings, { identity, ownDomains }, checks);
    await createSsoTransaction(em, secretBox, confirmToken, {
      settings,
      purpose: 'confirm',
      browserToken,
      redirectTo,
      claims,
    });
    await recordSsoAttempt(em, {
      configurationId: settings.id,
      purpose: 'confirm',
      succeeded: true,
      checks: checks.all,
    });
    const { organizationName } = settings;
    return { kind: 'confirm', confirmToken, browserToken, organizationName, email: claims.email };
  });
}

/** Links a proved identity with an account, in the caller's transaction. */
export async function linkIdentity(
  { notifications, ownDomains }: CompletionOptions,
  transaction: Transaction,
  { settings, claims, userId }: { settings: SsoSettings; claims: SsoClaims; userId: string },
  client: Client,
): Promise<void> {
  const { em } = transaction;
  const checks = createSsoChecks();
  try {
    // The domain may have been lost meanwhile.
    const identity = stated(claims);
    await checkIdentity(em, settings, { identity, ownDomains }, checks);
    await requireNotRemoved(em, { organizationId: settings.organizationId, userId }, checks);
  } catch (error) {
    throw error instanceof SsoRefusal ? ssoFailed(error.check) : error;
  }
  if (!(await addIdentity(em, settings, { claims, userId })))
    throw new AppError('conflict', {
      detail: 'The identity is linked with an account already.',
      fix: 'Sign in through SSO.',
    });
  await joinOrganization(em, settings, { userId, client });
  const { organizationId, organizationName } = settings;
  await recordAudit(
    em,
    { organizationId, actor: { kind: 'user', id: userId }, ip: client.ip, requestId: client.requestId },
    { action: 'sso_identity.linked', resourceType: 'user', resourceId: userId },
  );
  const [user] = await em.execute<{ email: string }[]>(sql`select email from users where id = ${userId}`);
  await notifications.notify(transaction, {
    userId,
    email: user?.email ?? claims.email,
    template: 'sso-linked',
    params: { organizationName, at: formatUtc(new Date()), ip: client.ip },
  });
}

/** Claims that were checked before, and are checked again: the domain may have been lost meanwhile. */
export const stated = (claims: SsoClaims): StatedIdentity => ({
  ...claims,
  emailVerified: undefined,
  authenticatedAt: claims.authenticatedAt === null ? null : new Date(claims.authenticatedAt),
});

/** Remembers the assertion until it expires, so that it counts once. @throws SsoRefusal */
async function useAssertion(
  em: EntityManager,
  { id, organizationId }: SsoSettings,
  identity: StatedIdentity | SamlIdentity,
  checks: SsoChecks,
): Promise<void> {
  if (!('assertionId' in identity)) return;
  const used = await em.execute<object[]>(sql`
    insert into sso_assertions (configuration_id, assertion_hash, org_id, expires_at)
    values (${id}, ${sha256(identity.assertionId)}, ${organizationId}, ${identity.expiresAt})
    on conflict do nothing returning expires_at`);
  checks.require('replay', used.length > 0, used.length > 0 ? 'new' : 'used before', 'new');
}
