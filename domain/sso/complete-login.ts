import { sql } from 'kysely';
import { sha256 } from '../../platform/crypto.ts';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Client } from '../identity/person.ts';
import type { SignedIn } from '../people/sign-in.service.ts';
import { announceSetupTest } from './announce-setup-test.ts';
import { checkIdentity, type StatedIdentity } from './check-identity.ts';
import {
  type CompletionOptions,
  findReplacedConfigurations,
  linkByFormer,
  type ReplacedConfiguration,
} from './link-login.ts';
import type { SamlIdentity } from './saml/saml-assertion.ts';
import { findAccount, signInIdentity } from './sign-in-identity.ts';
import {
  createSsoChecks,
  type SsoCheck,
  type SsoCheckName,
  type SsoChecks,
  SsoRefusal,
  ssoFailed,
} from './sso-checks.ts';
import type { SsoStatus } from './sso-configuration.entity.ts';
import type { SsoPurpose } from './sso-login.entity.ts';
import type { SsoSettings } from './sso-settings.ts';
import {
  browserTokenOf,
  createSsoToken,
  createSsoTransaction,
  type UsedSsoTransaction,
} from './sso-transactions.ts';

export type { CompletionOptions } from './link-login.ts';

export type SsoOutcome =
  | { kind: 'signed_in'; signedIn: SignedIn; redirectTo: string }
  /** A test passed, so the configuration can be activated. Nothing else has changed. */
  | { kind: 'tested'; configurationId: string; checks: SsoCheck[]; redirectTo: string }
  /**
   * The identity is unknown. Within ten minutes the token links the identity with an account: by a fresh sign-in to that
   * account, or by a sign-in through a former configuration.
   */
  | {
      kind: 'unknown';
      linkToken: string;
      /** Whether the address has an account. If not, the person may also create one. */
      hasAccount: boolean;
      former: ReplacedConfiguration[];
    }
  /**
   * The identity provider began the login. The person has to agree, because other sites could otherwise sign the browser in
   * to an account of their own.
   */
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
    await database.peopleTransaction(({ db }) =>
      recordSsoAttempt(db, { configurationId: shownId, purpose, succeeded: false, checks: checks.all }),
    );
    throw toError(error.check, checks.all);
  }
}

export interface ProvedLogin {
  settings: SsoSettings;
  transaction: Pick<UsedSsoTransaction<unknown>, 'purpose' | 'redirectTo'>;
  identity: StatedIdentity | SamlIdentity;
  browserToken: string | undefined;
  /** With the purpose `prove`: token of the identity that waits for this login. */
  linkToken?: string | undefined;
}

/** Completes a login whose answer was proved to come from the identity provider and to be meant for this browser. */
export function complete(
  options: CompletionOptions,
  { settings, transaction, identity, browserToken, linkToken }: ProvedLogin,
  { checks, client }: { checks: SsoChecks; client: Client },
): Promise<SsoOutcome> {
  const { database, secretBox, ownDomains } = options;
  const { purpose, redirectTo } = transaction;
  return database.peopleTransaction(async (context): Promise<SsoOutcome> => {
    const { db } = context;
    await useAssertion(db, settings, identity, checks);
    const claims = await checkIdentity(db, settings, { identity, ownDomains }, checks);
    const attempt = { configurationId: settings.shownId, purpose, succeeded: true, checks: checks.all };
    if (purpose === 'test') {
      const isCurrent = await markTested(db, settings);
      await recordSsoAttempt(db, attempt);
      if (isCurrent) await announceSetupTest(context, options, settings);
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
      await recordSsoAttempt(db, attempt);
      return { kind: 'signed_in', ...linked };
    }
    const former = await findReplacedConfigurations(db, settings.organizationId);
    const account = await findAccount(db, settings, claims, {
      checks,
      client,
      mayBeNew: former.length === 0,
    });
    await recordSsoAttempt(db, attempt);
    if (account.kind === 'user') {
      const { authenticatedAt } = identity;
      const signedIn = await signInIdentity(db, settings, { ...account, authenticatedAt }, client);
      return { kind: 'signed_in', signedIn, redirectTo };
    }
    const newLinkToken = createSsoToken();
    await createSsoTransaction(db, secretBox, newLinkToken, {
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
export function requestConfirmation(
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
  return database.peopleTransaction(async ({ db }): Promise<SsoOutcome> => {
    await useAssertion(db, settings, identity, checks);
    const claims = await checkIdentity(db, settings, { identity, ownDomains }, checks);
    await createSsoTransaction(db, secretBox, confirmToken, {
      settings,
      purpose: 'confirm',
      browserToken,
      redirectTo,
      claims,
    });
    await recordSsoAttempt(db, {
      configurationId: settings.shownId,
      purpose: 'confirm',
      succeeded: true,
      checks: checks.all,
    });
    const { organizationName } = settings;
    return { kind: 'confirm', confirmToken, browserToken, organizationName, email: claims.email };
  });
}

/** Returns false if the settings have changed since the test began. */
async function markTested(db: Db, { id, version }: SsoSettings): Promise<boolean> {
  const tested = await db
    .updateTable('sso_configurations')
    .set({
      tested_at: sql<Date>`now()`,
      status: sql<SsoStatus>`case when status in ('draft', 'disabled') then 'tested' else status end`,
    })
    .where('id', '=', id)
    .where('version', '=', version)
    .returning('id')
    .executeTakeFirst();
  return tested !== undefined;
}

/** Remembers the assertion until it expires, so that it can be used only once. @throws SsoRefusal */
async function useAssertion(
  db: Db,
  { id, organizationId }: SsoSettings,
  identity: StatedIdentity | SamlIdentity,
  checks: SsoChecks,
): Promise<void> {
  if (!('assertionId' in identity)) return;
  const added = await db
    .insertInto('sso_assertions')
    .values({
      configuration_id: id,
      assertion_hash: sha256(identity.assertionId),
      org_id: organizationId,
      expires_at: identity.expiresAt,
    })
    .onConflict((conflict) => conflict.doNothing())
    .returning('expires_at')
    .executeTakeFirst();
  checks.require('replay', added !== undefined, added ? 'new' : 'used before', 'new');
}

const MAX_ATTEMPTS = 20;

interface NewSsoAttempt {
  configurationId: string;
  purpose: SsoPurpose;
  succeeded: boolean;
  checks: readonly SsoCheck[];
}

/** Records a login or test in the caller's transaction, and keeps the newest 20 of the configuration. */
async function recordSsoAttempt(
  db: Db,
  { configurationId, purpose, succeeded, checks }: NewSsoAttempt,
): Promise<void> {
  await db
    .insertInto('sso_attempts')
    .columns(['id', 'org_id', 'configuration_id', 'purpose', 'succeeded', 'checks'])
    .expression((eb) =>
      eb
        .selectFrom('sso_configurations')
        .select([
          sql<string>`${newId('ssoAttempt')}::text`.as('id'),
          'org_id',
          'id as configuration_id',
          sql<SsoPurpose>`${purpose}::text`.as('purpose'),
          sql<boolean>`${succeeded}::boolean`.as('succeeded'),
          json(checks).as('checks'),
        ])
        .where('id', '=', configurationId),
    )
    .execute();
  await db
    .deleteFrom('sso_attempts')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('sso_attempts')
        .select('id')
        .where('configuration_id', '=', configurationId)
        .orderBy('id', 'desc')
        .offset(MAX_ATTEMPTS),
    )
    .execute();
}
