import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import type { Client } from '../identity/person.ts';
import { requireOrganizationWide } from '../identity/scope.ts';
import { type BeginOptions, beginLogin, type LoginSecrets, type SsoStart } from './begin-login.ts';
import { checkFreshness } from './check-identity.ts';
import { complete, recordRefusals, requestConfirmation, type SsoOutcome } from './complete-login.ts';
import type { KeyRenewal } from './key-renewal.ts';
import { toStatedIdentity } from './link-login.ts';
import type { ServiceProvider } from './saml/saml-client.ts';
import {
  decodeSamlResponse,
  findAddressee,
  readSamlAnswer,
  readUnrequestedAnswer,
} from './saml/saml-login.ts';
import { ssoNotStarted } from './sso-checks.ts';
import type { SsoType } from './sso-configuration.entity.ts';
import type { SsoScope } from './sso-scope.ts';
import {
  findActiveSettings,
  findSettingsById,
  findTestedSettings,
  type SsoSettings,
} from './sso-settings.ts';
import { browserTokenOf, useSsoTransaction } from './sso-transactions.ts';

export type { SsoStart } from './begin-login.ts';
export type { SsoOutcome } from './complete-login.ts';

export interface SsoLoginOptions extends BeginOptions {
  keyRenewal: KeyRenewal;
}

export type SsoLoginService = ReturnType<typeof createSsoLoginService>;

/** Logins and tests through the identity providers of organizations. */
export function createSsoLoginService(options: SsoLoginOptions) {
  const { database, secretBox, oidc, saml, keyRenewal } = options;

  /** Uses up the transaction of a login or test, if this browser has begun one with the token. */
  function useLogin(token: string, browserToken: string | undefined, type: SsoType) {
    return database.peopleTransaction(async ({ db }) => {
      const transaction = await useSsoTransaction<LoginSecrets>(db, secretBox, {
        token,
        browserToken,
        purposes: ['login', 'test', 'prove'],
      });
      if (!transaction) return undefined;
      const settings = await findSettingsById(db, secretBox, transaction.configurationId);
      return settings?.type === type ? { transaction, settings } : undefined;
    });
  }

  /** Finds the configuration of a login that the identity provider began. */
  async function findActiveSaml(id: string | undefined): Promise<SsoSettings | undefined> {
    if (id === undefined) return undefined;
    const settings = await database.peopleTransaction(({ db }) => findSettingsById(db, secretBox, id));
    return settings?.type === 'saml' && settings.status === 'active' ? settings : undefined;
  }

  return {
    /**
     * Begins a login.
     *
     * @param input.organization id or slug, or the address of the person: the organization that has verified its domain.
     * @param input.isFresh whether the identity provider must have the person sign in again.
     * @throws AppError `not_found` if there is no active configuration; `sso_failed`.
     */
    async start({
      organization,
      redirectTo,
      isFresh,
      browserToken,
    }: {
      organization: string;
      redirectTo: string;
      isFresh: boolean;
      browserToken: string | undefined;
    }): Promise<SsoStart> {
      const settings = await database.peopleTransaction(({ db }) =>
        findActiveSettings(db, secretBox, organization),
      );
      const isAddress = organization.includes('@');
      if (!settings)
        throw notFound(isAddress ? 'single sign-on for' : 'single sign-on of the organization', organization);
      const loginHint = isAddress ? organization : undefined;
      const request = { purpose: 'login', redirectTo, isFresh, userId: null, loginHint } as const;
      return beginLogin(options, settings, request, browserTokenOf(browserToken));
    },

    /**
     * Begins a login that only tests a configuration.
     *
     * @throws AppError `not_found`; `unprocessable` with the check that failed, if the login cannot begin.
     */
    async startTest(
      scope: SsoScope,
      configurationId: string,
      { redirectTo, browserToken }: { redirectTo: string; browserToken: string | undefined },
    ): Promise<SsoStart> {
      requireOrganizationWide(scope);
      const settings = await database.peopleTransaction(({ db }) =>
        findTestedSettings(db, secretBox, configurationId),
      );
      if (settings?.organizationId !== scope.organizationId)
        throw notFound('SSO configuration', configurationId);
      const userId = scope.actor.kind === 'user' ? scope.actor.id : null;
      const request = { purpose: 'test', redirectTo, isFresh: false, userId } as const;
      return beginLogin(options, settings, request, browserTokenOf(browserToken));
    },

    /**
     * Finishes a login with the parameters that the identity provider sent through the browser.
     *
     * @throws AppError `sso_failed`
     */
    async finishOidc(
      { parameters, browserToken }: { parameters: URLSearchParams; browserToken: string | undefined },
      client: Client,
    ): Promise<SsoOutcome> {
      const [state, another] = parameters.getAll('state');
      if (state === undefined || another !== undefined) throw ssoNotStarted();
      const used = await useLogin(state, browserToken, 'oidc');
      if (!used) throw ssoNotStarted();
      const { transaction, settings } = used;
      return recordRefusals(options, settings, transaction.purpose, async (checks) => {
        const { secrets } = transaction;
        const answer = { parameters, secrets, renewKeys: () => keyRenewal.claim(settings) };
        const identity = await oidc.readAnswer(settings, answer, checks);
        checkFreshness(transaction, identity.authenticatedAt, checks);
        const { linkToken } = secrets;
        const login = { settings, transaction, identity, browserToken, linkToken };
        return complete(options, login, { checks, client });
      });
    },

    /**
     * Finishes a login with a SAML response, or accepts a login that the identity provider began, if the configuration
     * allows that.
     *
     * @param input.serviceProviderId the id in the address that received it; null for the address that all configurations
     * share.
     * @param input.redirectTo the page after a login that the identity provider began.
     * @throws AppError `sso_failed`
     */
    async finishSaml(
      {
        samlResponse,
        relayState,
        serviceProviderId,
        browserToken,
        redirectTo,
      }: {
        samlResponse: string;
        relayState: string | undefined;
        serviceProviderId: string | null;
        browserToken: string | undefined;
        redirectTo: string;
      },
      client: Client,
    ): Promise<SsoOutcome> {
      const response = { inspection: decodeSamlResponse(samlResponse), serviceProviderId };
      const used = relayState === undefined ? undefined : await useLogin(relayState, browserToken, 'saml');
      if (used) {
        const { transaction, settings } = used;
        return recordRefusals(options, settings, transaction.purpose, async (checks) => {
          const identity = await readSamlAnswer(options, used, response, checks);
          const { linkToken } = transaction.secrets;
          const login = { settings, transaction, identity, browserToken, linkToken };
          return complete(options, login, { checks, client });
        });
      }
      const settings = await findActiveSaml(findAddressee(saml, response));
      if (!settings) throw ssoNotStarted();
      return recordRefusals(options, settings, 'confirm', async (checks) => {
        const identity = await readUnrequestedAnswer(options, settings, response, checks);
        return requestConfirmation(options, { settings, identity, browserToken, redirectTo }, checks);
      });
    },

    /** Completes a login that the identity provider began. @throws AppError `sso_failed` */
    async confirm(
      { token, browserToken }: { token: string; browserToken: string | undefined },
      client: Client,
    ): Promise<SsoOutcome> {
      const used = await database.peopleTransaction(async ({ db }) => {
        const transaction = await useSsoTransaction(db, secretBox, {
          token,
          browserToken,
          purposes: ['confirm'],
        });
        const settings = transaction && (await findSettingsById(db, secretBox, transaction.configurationId));
        return settings && { transaction, settings };
      });
      const claims = used?.transaction.claims;
      if (!used || !claims) throw ssoNotStarted();
      const { settings, transaction } = used;
      return recordRefusals(options, settings, 'login', (checks) => {
        const login = { purpose: 'login', redirectTo: transaction.redirectTo } as const;
        return complete(
          options,
          { settings, transaction: login, identity: toStatedIdentity(claims), browserToken },
          { checks, client },
        );
      });
    },

    /**
     * What the organization's identity provider must know about this service.
     *
     * @param configurationId default: the active configuration, or else the newest.
     * @throws AppError `not_found` without a SAML configuration.
     */
    async findServiceProvider(
      organizationId: string,
      configurationId?: string,
    ): Promise<ServiceProvider & { sharedAcsUrl: string }> {
      const id = await database.peopleTransaction(({ db }) =>
        findServiceProviderId(db, organizationId, configurationId),
      );
      if (id === undefined)
        throw notFound('SAML configuration of the organization', configurationId ?? organizationId);
      return { ...saml.serviceProvider(id), sharedAcsUrl: saml.sharedAcsUrl };
    },
  };
}

async function findServiceProviderId(
  db: Db,
  organizationId: string,
  configurationId: string | undefined,
): Promise<string | undefined> {
  const found = await db
    .selectFrom('sso_configurations as c')
    .innerJoin('organizations as o', (join) =>
      join.onRef('o.id', '=', 'c.org_id').on('o.deleted_at', 'is', null),
    )
    .select(sql<string>`coalesce(c.service_provider_id, c.id)`.as('id'))
    .where('c.org_id', '=', organizationId)
    .where('c.type', '=', 'saml')
    .$if(configurationId !== undefined, (query) => query.where('c.id', '=', configurationId ?? ''))
    .orderBy((eb) => eb('c.status', '=', 'active'), 'desc')
    .orderBy('c.id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return found?.id;
}
