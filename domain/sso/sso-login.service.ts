import { sql } from '@mikro-orm/core';
import { notFound } from '../../platform/errors.ts';
import { isId } from '../../platform/ids.ts';
import type { Person } from '../identity/person.ts';
import { requireOrganizationWide } from '../identity/scope.ts';
import type { Client } from '../people/client.ts';
import type { SignedIn } from '../people/sign-in.service.ts';
import { checkFreshness } from './check-identity.ts';
import {
  askToConfirm,
  type CompletionOptions,
  complete,
  recordRefusals,
  type SsoOutcome,
} from './complete-login.ts';
import type { KeyRenewal } from './key-renewal.ts';
import { type FormerWay, findFormerWays, type LinkUse, linkIdentity, stated, useLink } from './link-login.ts';
import type { OidcClient, OidcSecrets } from './oidc-client.ts';
import type { SamlClient, ServiceProvider } from './saml/saml-client.ts';
import { decodeResponse, type ResponseInspection, readStatedFacts } from './saml/saml-response.ts';
import { findAccount, signInIdentity } from './sign-in-identity.ts';
import {
  createSsoChecks,
  type SsoChecks,
  SsoRefusal,
  ssoFailed,
  ssoNotStarted,
  ssoTestFailed,
  UnknownKey,
} from './sso-checks.ts';
import type { SsoType } from './sso-configuration.entity.ts';
import type { SsoScope } from './sso-scope.ts';
import {
  findActiveSettings,
  findSettingsById,
  findTestedSettings,
  oidcSettings,
  type SsoSettings,
} from './sso-settings.ts';
import {
  browserTokenOf,
  createSsoToken,
  createSsoTransaction,
  peekSsoTransaction,
  useSsoTransaction,
} from './sso-transactions.ts';

export type { SsoOutcome } from './complete-login.ts';

/** A login that has begun. */
export interface SsoStart {
  /** At the identity provider. */
  redirectUrl: string;
  /** For a cookie: only this browser can finish. */
  browserToken: string;
}

export interface SsoLoginService {
  /**
   * Begins a login.
   *
   * @param input.organization id or slug, or the address of the person: the organization that has verified its domain.
   * @throws AppError `not_found` if there is no active configuration; `sso_failed`.
   */
  start(input: {
    organization: string;
    redirectTo: string;
    /** Asks the identity provider to have the person sign in again. */
    isFresh: boolean;
    browserToken: string | undefined;
  }): Promise<SsoStart>;
  /**
   * Begins a login that only proves a configuration.
   *
   * @throws AppError `not_found`; `unprocessable` with the check that failed, if the login cannot begin.
   */
  startTest(
    scope: SsoScope,
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
   * Finishes a login with a SAML response, or takes one that the identity provider began, where that is allowed.
   *
   * @param input.serviceProviderId of the address that received it; null for the address of all configurations.
   * @throws AppError `sso_failed`
   */
  finishSaml(
    input: {
      samlResponse: string;
      relayState: string | undefined;
      serviceProviderId: string | null;
      browserToken: string | undefined;
      /** Where a login that the identity provider began continues. */
      redirectTo: string;
    },
    client: Client,
  ): Promise<SsoOutcome>;
  /** Completes a login that the identity provider began. @throws AppError `sso_failed` */
  confirm(input: { token: string; browserToken: string | undefined }, client: Client): Promise<SsoOutcome>;
  /**
   * What the organization's identity provider has to know.
   *
   * @param configurationId default: the active configuration, or the newest.
   * @throws AppError `not_found` without a SAML configuration.
   */
  findServiceProvider(
    organizationId: string,
    configurationId?: string,
  ): Promise<ServiceProvider & { sharedAcsUrl: string }>;
  /** Reads the keys of the identity provider again. @throws AppError as `KeyRenewal.readAgain`. */
  readAgain(scope: SsoScope, configurationId: string): Promise<void>;
  /** What a person can do whose identity is proved but unknown. Undefined for another browser, and after ten minutes. */
  findLink(link: LinkUse): Promise<LinkChoice | undefined>;
  /**
   * Begins a login through a replaced configuration, to show whose account it is.
   *
   * @throws AppError `sso_failed` for a token that cannot be used; `not_found` for another configuration.
   */
  startLink(link: LinkUse, configurationId: string): Promise<SsoStart>;
  /** Makes an account for a person who has none. @throws AppError `sso_failed`, also if the address has an account. */
  join(link: LinkUse, client: Client): Promise<SignedIn>;
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

/** An identity that waits for its account. */
export interface LinkChoice {
  /** As the identity provider states it. */
  email: string;
  hasAccount: boolean;
  former: FormerWay[];
}

export interface SsoLoginOptions extends CompletionOptions {
  oidc: OidcClient;
  saml: SamlClient;
  keyRenewal: KeyRenewal;
}

export function createSsoLoginService(options: SsoLoginOptions): SsoLoginService {
  const { database, secretBox, oidc, saml, keyRenewal } = options;

  async function begin(
    settings: SsoSettings,
    { loginHint, linkToken, ...request }: LoginRequest,
    browserToken: string,
  ): Promise<SsoStart> {
    const state = createSsoToken();
    const secrets: LoginSecrets = {
      state,
      nonce: createSsoToken(),
      verifier: createSsoToken(),
      requestId: `_${createSsoToken()}`,
      ...(linkToken === undefined ? {} : { linkToken }),
    };
    const { isFresh } = request;
    const redirectUrl = await recordRefusals(
      options,
      settings,
      request.purpose,
      (checks) =>
        settings.type === 'oidc'
          ? oidc.authorizationUrl(oidcSettings(settings, checks), { ...secrets, isFresh, loginHint }, checks)
          : saml.authorizationUrl(
              settings.idpMetadataXml,
              {
                provider: saml.serviceProvider(settings.serviceProviderId),
                requestId: secrets.requestId,
                relayState: state,
                isFresh,
              },
              checks,
            ),
      request.purpose === 'test' ? ssoTestFailed : ssoFailed,
    );
    await database.peopleTransaction(({ em }) =>
      createSsoTransaction(em, secretBox, state, { settings, ...request, browserToken, secrets }),
    );
    return { redirectUrl, browserToken };
  }

  /** Uses up the transaction of a login or test, if this browser has begun one with the token. */
  function useLogin(token: string, browserToken: string | undefined, type: SsoType) {
    return database.peopleTransaction(async ({ em }) => {
      const transaction = await useSsoTransaction<LoginSecrets>(em, secretBox, {
        token,
        browserToken,
        purposes: ['login', 'test', 'prove'],
      });
      if (!transaction) return undefined;
      const settings = await findSettingsById(em, secretBox, transaction.configurationId);
      return settings?.type === type ? { transaction, settings } : undefined;
    });
  }

  /** The service as the identity provider addressed it: by the configuration's own address, or the one for all. */
  function addressed({ serviceProviderId: id }: SsoSettings, receivedAt: string | null): ServiceProvider {
    const own = saml.serviceProvider(id);
    return receivedAt === null ? { ...own, acsUrl: saml.sharedAcsUrl } : own;
  }

  /** Reads a response once more if it is signed with a key that the metadata did not have when it was read. */
  async function readSaml(settings: SsoSettings, answer: SamlAnswer, checks: SsoChecks) {
    const before = checks.all.length;
    try {
      return await saml.readAnswer(settings.idpMetadataXml, answer, checks);
    } catch (error) {
      const renewed = error instanceof UnknownKey ? await keyRenewal.renewMetadata(settings) : undefined;
      if (renewed === undefined) throw error;
      checks.restart(before);
      return saml.readAnswer(renewed, answer, checks);
    }
  }

  /** The configuration of a login that the identity provider began: by address or audience, never by issuer. */
  async function findIdpInitiated(
    inspection: ResponseInspection,
    receivedAt: string | null,
  ): Promise<SsoSettings | undefined> {
    const { audiences, inResponseTo } = readStatedFacts(inspection);
    // The answer to a request that this browser did not make, or made too long ago.
    if (inResponseTo !== undefined) return undefined;
    const audience = receivedAt === null && audiences.length === 1 ? audiences[0] : undefined;
    const id = receivedAt ?? (audience === undefined ? undefined : saml.serviceProviderIdOf(audience));
    if (id === undefined || !isId('ssoConfiguration', id)) return undefined;
    const settings = await database.peopleTransaction(({ em }) => findSettingsById(em, secretBox, id));
    return settings?.type === 'saml' && settings.status === 'active' ? settings : undefined;
  }

  return {
    async start({ organization, redirectTo, isFresh, browserToken }) {
      const settings = await database.peopleTransaction(({ em }) =>
        findActiveSettings(em, secretBox, organization),
      );
      const isAddress = organization.includes('@');
      if (!settings)
        throw notFound(isAddress ? 'single sign-on for' : 'single sign-on of the organization', organization);
      const request = { purpose: 'login', redirectTo, isFresh, userId: null } as const;
      const loginHint = isAddress ? organization : undefined;
      return begin(settings, { ...request, loginHint }, browserTokenOf(browserToken));
    },

    async startTest(scope, configurationId, { redirectTo, browserToken }) {
      requireOrganizationWide(scope);
      const settings = await database.peopleTransaction(({ em }) =>
        findTestedSettings(em, secretBox, configurationId),
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
      const used = await useLogin(state, browserToken, 'oidc');
      if (!used) throw ssoNotStarted();
      const { transaction, settings } = used;
      return recordRefusals(options, settings, transaction.purpose, async (checks) => {
        const { secrets } = transaction;
        const renewKeys = async () => {
          const renewed = await keyRenewal.claim(settings);
          return renewed && oidcSettings(renewed, checks);
        };
        const answer = { parameters, secrets, renewKeys };
        const identity = await oidc.readAnswer(oidcSettings(settings, checks), answer, checks);
        checkFreshness(transaction, identity.authenticatedAt, checks);
        const { linkToken } = secrets;
        const login = { settings, transaction, identity, browserToken, linkToken };
        return complete(options, login, { checks, client });
      });
    },

    async finishSaml({ samlResponse, relayState, serviceProviderId, browserToken, redirectTo }, client) {
      const inspection = decode(samlResponse);
      const used = relayState === undefined ? undefined : await useLogin(relayState, browserToken, 'saml');
      if (used) {
        const { transaction, settings } = used;
        return recordRefusals(options, settings, transaction.purpose, async (checks) => {
          const received = serviceProviderId ?? settings.serviceProviderId;
          const [seen, own] = [received, settings.serviceProviderId].map(
            (id) => saml.serviceProvider(id).acsUrl,
          );
          if (seen !== own) checks.fail('destination', seen, own);
          const provider = addressed(settings, serviceProviderId);
          const { requestId, linkToken } = transaction.secrets;
          const identity = await readSaml(settings, { inspection, provider, requestId }, checks);
          checkFreshness(transaction, identity.authenticatedAt, checks);
          const login = { settings, transaction, identity, browserToken, linkToken };
          return complete(options, login, { checks, client });
        });
      }
      const settings = await findIdpInitiated(inspection, serviceProviderId);
      if (!settings) throw ssoNotStarted();
      return recordRefusals(options, settings, 'confirm', async (checks) => {
        if (!settings.allowIdpInitiated)
          checks.fail('idp_initiated', 'no InResponseTo', 'the answer to a request of this service');
        const provider = addressed(settings, serviceProviderId);
        const identity = await readSaml(settings, { inspection, provider, requestId: null }, checks);
        return askToConfirm(options, { settings, identity, browserToken, redirectTo }, checks);
      });
    },

    async confirm({ token, browserToken }, client) {
      const used = await database.peopleTransaction(async ({ em }) => {
        const transaction = await useSsoTransaction(em, secretBox, {
          token,
          browserToken,
          purposes: ['confirm'],
        });
        const settings = transaction && (await findSettingsById(em, secretBox, transaction.configurationId));
        return settings && { transaction, settings };
      });
      const claims = used?.transaction.claims;
      if (!used || !claims) throw ssoNotStarted();
      const { settings, transaction } = used;
      return recordRefusals(options, settings, 'login', (checks) => {
        const identity = stated(claims);
        const login = { purpose: 'login', redirectTo: transaction.redirectTo } as const;
        return complete(
          options,
          { settings, transaction: login, identity, browserToken },
          { checks, client },
        );
      });
    },

    async findServiceProvider(organizationId, configurationId) {
      const isWanted = configurationId === undefined ? sql`true` : sql`c.id = ${configurationId}`;
      const [row] = await database.peopleTransaction(({ em }) =>
        em.execute<{ id: string }[]>(sql`
          select coalesce(c.service_provider_id, c.id) as id from sso_configurations c
          join organizations o on o.id = c.org_id and o.deleted_at is null
          where c.org_id = ${organizationId} and c.type = 'saml' and ${isWanted}
          order by (c.status = 'active') desc, c.id desc limit 1`),
      );
      if (!row) throw notFound('SAML configuration of the organization', configurationId ?? organizationId);
      return { ...saml.serviceProvider(row.id), sharedAcsUrl: saml.sharedAcsUrl };
    },

    async readAgain(scope, configurationId) {
      requireOrganizationWide(scope);
      const settings = await database.peopleTransaction(({ em }) =>
        findSettingsById(em, secretBox, configurationId),
      );
      await keyRenewal.readAgain(scope, settings, configurationId);
    },

    findLink: (link) =>
      database.peopleTransaction(async ({ em }) => {
        const open = await peekSsoTransaction(em, { ...link, purposes: ['link'] });
        if (!open?.claims) return undefined;
        const former = await findFormerWays(em, open.organizationId);
        return { email: open.claims.email, hasAccount: open.userId !== null, former };
      }),

    async startLink(link, configurationId) {
      const { open, former } = await database.peopleTransaction(async ({ em }) => ({
        open: await peekSsoTransaction(em, { ...link, purposes: ['link'] }),
        former: await findSettingsById(em, secretBox, configurationId),
      }));
      if (!open) throw ssoNotStarted();
      if (former?.organizationId !== open.organizationId || !former.isReplaced)
        throw notFound('replaced SSO configuration', configurationId);
      const { redirectTo } = open;
      const request = { purpose: 'prove', redirectTo, isFresh: false, userId: null } as const;
      return begin(former, { ...request, linkToken: link.token }, browserTokenOf(link.browserToken));
    },

    join: (link, client) =>
      database.peopleTransaction(async ({ em }) => {
        const { transaction, settings, claims } = await useLink(options, em, link);
        if (transaction.userId !== null) throw ssoNotStarted();
        const checks = createSsoChecks();
        const account = await findAccount(em, settings, claims, { checks, client, mayBeNew: true });
        // The address has got an account meanwhile.
        if (account.kind === 'unknown') throw ssoNotStarted();
        const { authenticatedAt } = stated(claims);
        return signInIdentity(em, settings, { userId: account.userId, authenticatedAt }, client);
      }),

    link: (person, link, client) =>
      database.peopleTransaction(async (context) => {
        const { transaction, settings, claims } = await useLink(options, context.em, link);
        // Without an account of the address, the person may have one with another address.
        if (transaction.userId !== null && transaction.userId !== person.userId) throw ssoNotStarted();
        return linkIdentity(options, context, { settings, claims, userId: person.userId }, client);
      }),
  };
}

interface LoginRequest {
  purpose: 'login' | 'test' | 'prove';
  redirectTo: string;
  isFresh: boolean;
  userId: string | null;
  /** Address that the person typed in. */
  loginHint?: string | undefined;
  /** With the purpose `prove`. */
  linkToken?: string;
}

interface SamlAnswer {
  inspection: ResponseInspection;
  provider: ServiceProvider;
  requestId: string | null;
}

/** What a transaction keeps until the identity provider answers. */
interface LoginSecrets extends OidcSecrets {
  /** Id of the SAML request. */
  requestId: string;
  /** The identity that a login through a replaced configuration shall be linked with. */
  linkToken?: string;
}

function decode(samlResponse: string): ResponseInspection {
  try {
    return decodeResponse(samlResponse, createSsoChecks());
  } catch (error) {
    throw error instanceof SsoRefusal ? ssoFailed(error.check) : error;
  }
}
