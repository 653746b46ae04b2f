import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { sha256 } from '../../platform/crypto.ts';
import type { AppError } from '../../platform/errors.ts';
import type { Client } from '../people/client.ts';
import type { SignedIn } from '../people/sign-in.service.ts';
import { announceSetupTest } from './announce-setup-test.ts';
import { checkIdentity, type StatedIdentity } from './check-identity.ts';
import { type CompletionOptions, type FormerWay, findFormerWays, linkByFormer } from './link-login.ts';
import type { SamlIdentity } from './saml/saml-assertion.ts';
import { findAccount, signInIdentity } from './sign-in-identity.ts';
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
import type { SsoPurpose } from './sso-transaction.entity.ts';
import {
  browserTokenOf,
  createSsoToken,
  createSsoTransaction,
  type UsedSsoTransaction,
} from './sso-transactions.ts';

export type { CompletionOptions } from './link-login.ts';

export type SsoOutcome =
  | { kind: 'signed_in'; signedIn: SignedIn; redirectTo: string }
  /** A test passed: the configuration can be activated. Nothing else has changed. */
  | { kind: 'tested'; configurationId: string; checks: SsoCheck[]; redirectTo: string }
  /**
   * The identity is unknown. Within ten minutes the token links it with an account: by a fresh sign-in to that account, or by one
   * through a former configuration.
   */
  | {
      kind: 'unknown';
      linkToken: string;
      /** The address has an account. If not, the person may also say that they are new. */
      hasAccount: boolean;
      former: FormerWay[];
    }
  /** The identity provider began. The person has to agree: else other sites could sign browsers in to their own account. */
  | { kind: 'confirm'; confirmToken: string; browserToken: string; organizationName: string; email: string };

/** Runs a step of a login. A refusal is recorded with its checks, and becomes the error that the client sees. */
export async function recordRefusals<T>(
  { database }: Pick<CompletionOptions, 'database'>,
  { shownId }: Pick<SsoSettings, 'shownId'>,
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
      recordSsoAttempt(em, { configurationId: shownId, purpose, succeeded: false, checks: checks.all }),
    );
    throw toError(error.check, checks.all);
  }
}

export interface ProvedLogin {
  settings: SsoSettings;
  transaction: Pick<UsedSsoTransaction<unknown>, 'purpose' | 'redirectTo'>;
  identity: StatedIdentity | SamlIdentity;
  browserToken: string | undefined;
  /** With the purpose `prove`: the identity that waits for it. */
  linkToken?: string | undefined;
}

/** What follows when the identity provider's answer is proved to be genuine and meant for this browser. */
export function complete(
  options: CompletionOptions,
  { settings, transaction, identity, browserToken, linkToken }: ProvedLogin,
  { checks, client }: { checks: SsoChecks; client: Client },
): Promise<SsoOutcome> {
  const { database, secretBox, ownDomains } = options;
  const { purpose, redirectTo } = transaction;
  return database.peopleTransaction(async (context): Promise<SsoOutcome> => {
    const { em } = context;
    await useAssertion(em, settings, identity, checks);
    const claims = await checkIdentity(em, settings, { identity, ownDomains }, checks);
    const attempt = { configurationId: settings.shownId, purpose, succeeded: true, checks: checks.all };
    if (purpose === 'test') {
      const tested = await em.execute<object[]>(sql`
        update sso_configurations set tested_at = now(),
          status = case when status in ('draft', 'disabled') then 'tested' else status end
        where id = ${settings.id} and version = ${settings.version} returning id`);
      await recordSsoAttempt(em, attempt);
      if (tested.length > 0) await announceSetupTest(context, options, settings);
      return { kind: 'tested', configurationId: settings.shownId, checks: checks.all, redirectTo };
    }
    if (purpose === 'prove') {
      const link = { token: linkToken ?? '', browserToken };
      const linked = await linkByFormer(
        options,
        context,
        { former: settings, claims, link },
        { checks, client },
      );
      await recordSsoAttempt(em, attempt);
      return { kind: 'signed_in', ...linked };
    }
    const former = await findFormerWays(em, settings.organizationId);
    const account = await findAccount(em, settings, claims, {
      checks,
      client,
      mayBeNew: former.length === 0,
    });
    await recordSsoAttempt(em, attempt);
    if (account.kind === 'user') {
      const { authenticatedAt } = identity;
      const signedIn = await signInIdentity(em, settings, { ...account, authenticatedAt }, client);
      return { kind: 'signed_in', signedIn, redirectTo };
    }
    const newLinkToken = createSsoToken();
    await createSsoTransaction(em, secretBox, newLinkToken, {
      settings,
      purpose: 'link',
      browserToken: browserTokenOf(browserToken),
      redirectTo,
      userId: account.userId,
      claims,
    });
    return { kind: 'unknown', linkToken: newLinkToken, hasAccount: account.userId !== null, former };
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
      configurationId: settings.shownId,
      purpose: 'confirm',
      succeeded: true,
      checks: checks.all,
    });
    const { organizationName } = settings;
    return { kind: 'confirm', confirmToken, browserToken, organizationName, email: claims.email };
  });
}

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
