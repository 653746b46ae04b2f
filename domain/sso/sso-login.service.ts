import { sql } from '@mikro-orm/core';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { Person } from '../identity/person.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import type { Client } from '../people/client.ts';
import type { SignedIn } from '../people/sign-in.service.ts';
import { checkFreshness, checkIdentity, type StatedIdentity } from './check-identity.ts';
import type { OidcClient, OidcSecrets, OidcSettings } from './oidc-client.ts';
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
  type SsoChecks,
  SsoRefusal,
  ssoFailed,
  ssoNotStarted,
} from './sso-checks.ts';
import { findActiveSettings, findSettingsById, type SsoSettings } from './sso-settings.ts';
import type { SsoClaims, SsoPurpose } from './sso-transaction.entity.ts';
import {
  browserTokenOf,
  createSsoToken,
  createSsoTransaction,
  type UsedSsoTransaction,
  useSsoTransaction,
} from './sso-transactions.ts';

/** A login that has begun. */
export interface SsoStart {
  /** At the identity provider. */
  redirectUrl: string;
  /** For a cookie: only this browser can finish. */
  browserToken: string;
}

export type SsoOutcome =
  | { kind: 'signed_in'; signedIn: SignedIn; redirectTo: string }
  /** A test passed: the configuration can be activated. Nothing else has changed. */
  | { kind: 'tested'; configurationId: string; checks: SsoCheck[]; redirectTo: string }
  /** The address has an account. A fresh sign-in to it and the token link both, within ten minutes. */
  | { kind: 'account_exists'; linkToken: string };

export interface SsoLoginService {
  /**
   * Begins a login.
   *
   * @param input.organization id or slug.
   * @throws AppError `not_found` if the organization has no active configuration; `sso_failed`.
   */
  start(input: {
    organization: string;
    redirectTo: string;
    /** Asks the identity provider to have the person sign in again. */
    isFresh: boolean;
    browserToken: string | undefined;
  }): Promise<SsoStart>;
  /** Begins a login that only proves a configuration. @throws AppError `not_found`, `sso_failed`. */
  startTest(
    scope: Scope,
    configurationId: string,
    input: { redirectTo: string; browserToken: string | undefined },
  ): Promise<SsoStart>;
  /**
   * Finishes a login with the parameters that the identity provider sent through the browser.
   *
   * @throws AppError `sso_failed`
   */
  finishOidc(
    input: { parameters: URLSearchParams; browserToken: string | undefined },
    client: Client,
  ): Promise<SsoOutcome>;
  /**
   * Links an identity with the account of the person, who has just signed in to it, and starts a session as SSO does.
   *
   * @throws AppError `sso_failed` for a token that is unknown, used, expired, of another browser or of another account.
   */
  link(
    person: Person,
    input: { token: string; browserToken: string | undefined },
    client: Client,
  ): Promise<SignedIn>;
}

export interface SsoLoginOptions {
  database: Database;
  secretBox: SecretBox;
  notifications: PersonNotificationService;
  oidc: OidcClient;
  /** Domains in which every tenant can receive mail. */
  ownDomains: readonly string[];
}

export function createSsoLoginService(options: SsoLoginOptions): SsoLoginService {
  const { database, secretBox, oidc } = options;

  async function begin(
    settings: SsoSettings,
    request: { purpose: 'login' | 'test'; redirectTo: string; isFresh: boolean; userId: string | null },
    browserToken: string,
  ): Promise<SsoStart> {
    const secrets: OidcSecrets = {
      state: createSsoToken(),
      nonce: createSsoToken(),
      verifier: createSsoToken(),
    };
    const redirectUrl = await recordRefusals(options, settings, request.purpose, (checks) =>
      oidc.authorizationUrl(oidcSettings(settings, checks), { ...secrets, isFresh: request.isFresh }, checks),
    );
    await database.peopleTransaction(({ em }) =>
      createSsoTransaction(em, secretBox, secrets.state, { settings, ...request, browserToken, secrets }),
    );
    return { redirectUrl, browserToken };
  }

  return {
    async start({ organization, redirectTo, isFresh, browserToken }) {
      const settings = await database.peopleTransaction(({ em }) =>
        findActiveSettings(em, secretBox, organization),
      );
      if (!settings) throw notFound('single sign-on of the organization', organization);
      const request = { purpose: 'login', redirectTo, isFresh, userId: null } as const;
      return begin(settings, request, browserTokenOf(browserToken));
    },

    async startTest(scope, configurationId, { redirectTo, browserToken }) {
      requireOrganizationWide(scope);
      const settings = await database.peopleTransaction(({ em }) =>
        findSettingsById(em, secretBox, configurationId),
      );
      if (settings?.organizationId !== scope.organizationId)
        throw notFound('SSO configuration', configurationId);
      const userId = scope.actor.kind === 'user' ? scope.actor.id : null;
      const request = { purpose: 'test', redirectTo, isFresh: false, userId } as const;
      return begin(settings, request, browserTokenOf(browserToken));
    },

    async finishOidc({ parameters, browserToken }, client) {
      const [state, another] = parameters.getAll('state');
      if (state === undefined || another !== undefined) throw ssoNotStarted();
      const used = await database.peopleTransaction(async ({ em }) => {
        const transaction = await useSsoTransaction<OidcSecrets>(em, secretBox, {
          token: state,
          browserToken,
          purposes: ['login', 'test'],
        });
        if (!transaction) return undefined;
        const settings = await findSettingsById(em, secretBox, transaction.configurationId);
        return settings?.type === 'oidc' ? { transaction, settings } : undefined;
      });
      if (!used) throw ssoNotStarted();
      const { transaction, settings } = used;
      return recordRefusals(options, settings, transaction.purpose, async (checks) => {
        const answer = { parameters, secrets: transaction.secrets };
        const identity = await oidc.readAnswer(oidcSettings(settings, checks), answer, checks);
        checkFreshness(transaction, identity.authenticatedAt, checks);
        return complete(options, { settings, transaction, identity, browserToken }, { checks, client });
      });
    },

    link: (person, { token, browserToken }, client) =>
      database.peopleTransaction(async (context) => {
        const { em } = context;
        const transaction = await useSsoTransaction(em, secretBox, {
          token,
          browserToken,
          purposes: ['link'],
        });
        const settings = transaction && (await findSettingsById(em, secretBox, transaction.configurationId));
        const claims = transaction?.claims;
        if (!settings || !claims || transaction.userId !== person.userId) throw ssoNotStarted();
        await link(options, context, { settings, claims, userId: person.userId }, client);
        const authenticatedAt = claims.authenticatedAt === null ? null : new Date(claims.authenticatedAt);
        return signInIdentity(em, settings, { userId: person.userId, authenticatedAt }, client);
      }),
  };
}

/** Runs a step of a login. A refusal is recorded with its checks, and becomes the error that the client sees. */
export async function recordRefusals<T>(
  { database }: Pick<SsoLoginOptions, 'database'>,
  { id }: Pick<SsoSettings, 'id'>,
  purpose: SsoPurpose,
  work: (checks: SsoChecks) => Promise<T>,
): Promise<T> {
  const checks = createSsoChecks();
  try {
    return await work(checks);
  } catch (error) {
    if (!(error instanceof SsoRefusal)) throw error;
    await database.peopleTransaction(({ em }) =>
      recordSsoAttempt(em, { configurationId: id, purpose, succeeded: false, checks: checks.all }),
    );
    throw ssoFailed(error.check);
  }
}

export interface ProvedLogin {
  settings: SsoSettings;
  transaction: Pick<UsedSsoTransaction<unknown>, 'purpose' | 'redirectTo'>;
  identity: StatedIdentity;
  browserToken: string | undefined;
}

/** What follows when the identity provider's answer is proved to be genuine and meant for this browser. */
export function complete(
  { database, secretBox, ownDomains }: SsoLoginOptions,
  { settings, transaction, identity, browserToken }: ProvedLogin,
  { checks, client }: { checks: SsoChecks; client: Client },
): Promise<SsoOutcome> {
  const { purpose, redirectTo } = transaction;
  return database.peopleTransaction(async ({ em }): Promise<SsoOutcome> => {
    const claims = await checkIdentity(em, settings, { identity, ownDomains }, checks);
    const attempt = { configurationId: settings.id, purpose, succeeded: true, checks: checks.all };
    if (purpose === 'test') {
      await em.execute(sql`
        update sso_configurations set tested_at = now(),
          status = case when status in ('draft', 'disabled') then 'tested' else status end
        where id = ${settings.id} and version = ${settings.version}`);
      await recordSsoAttempt(em, attempt);
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

async function link(
  { notifications, ownDomains }: SsoLoginOptions,
  transaction: Transaction,
  { settings, claims, userId }: { settings: SsoSettings; claims: SsoClaims; userId: string },
  client: Client,
): Promise<void> {
  const { em } = transaction;
  const checks = createSsoChecks();
  try {
    // The domain may have been lost meanwhile.
    const identity = { ...claims, emailVerified: undefined, authenticatedAt: null };
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

function oidcSettings({ id, issuer, clientId, clientSecret }: SsoSettings, checks: SsoChecks): OidcSettings {
  if (issuer === null || clientId === null || clientSecret === null)
    return checks.fail('provider', 'incomplete settings', 'issuer, client_id and client_secret');
  return { configurationId: id, issuer, clientId, clientSecret };
}
