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
  linkIdentity,
  recordRefusals,
  type SsoOutcome,
  stated,
} from './complete-login.ts';
import type { OidcClient, OidcSecrets, OidcSettings } from './oidc-client.ts';
import type { SamlClient, ServiceProvider } from './saml/saml-client.ts';
import { ASSERTION, decodeResponse, type ResponseInspection } from './saml/saml-response.ts';
import { onlyChild, textOf } from './saml/xml.ts';
import { signInIdentity } from './sign-in-identity.ts';
import {
  createSsoChecks,
  type SsoChecks,
  SsoRefusal,
  ssoFailed,
  ssoNotStarted,
  ssoTestFailed,
} from './sso-checks.ts';
import type { SsoType } from './sso-configuration.entity.ts';
import type { SsoScope } from './sso-scope.ts';
import { findActiveSettings, findSettingsById, type SsoSettings } from './sso-settings.ts';
import {
  browserTokenOf,
  createSsoToken,
  createSsoTransaction,
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
  /** What the organization's identity provider has to know. @throws AppError `not_found` without a SAML configuration. */
  findServiceProvider(organizationId: string): Promise<ServiceProvider & { sharedAcsUrl: string }>;
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

export interface SsoLoginOptions extends CompletionOptions {
  oidc: OidcClient;
  saml: SamlClient;
}

export function createSsoLoginService(options: SsoLoginOptions): SsoLoginService {
  const { database, secretBox, oidc, saml } = options;

  async function begin(
    settings: SsoSettings,
    request: { purpose: 'login' | 'test'; redirectTo: string; isFresh: boolean; userId: string | null },
    browserToken: string,
  ): Promise<SsoStart> {
    const state = createSsoToken();
    const secrets: LoginSecrets = {
      state,
      nonce: createSsoToken(),
      verifier: createSsoToken(),
      requestId: `_${createSsoToken()}`,
    };
    const { isFresh } = request;
    const redirectUrl = await recordRefusals(
      options,
      settings,
      request.purpose,
      (checks) =>
        settings.type === 'oidc'
          ? oidc.authorizationUrl(oidcSettings(settings, checks), { ...secrets, isFresh }, checks)
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
        purposes: ['login', 'test'],
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

  /** The configuration of a login that the identity provider began: by address or audience, never by issuer. */
  async function findIdpInitiated(
    inspection: ResponseInspection,
    receivedAt: string | null,
  ): Promise<SsoSettings | undefined> {
    const audience = receivedAt === null ? findAudience(inspection) : undefined;
    const id = receivedAt ?? (audience === undefined ? undefined : saml.serviceProviderIdOf(audience));
    if (id === undefined || !isId('ssoConfiguration', id)) return undefined;
    const settings = await database.peopleTransaction(({ em }) => findSettingsById(em, secretBox, id));
    const isAllowed = settings?.type === 'saml' && settings.status === 'active' && settings.allowIdpInitiated;
    return isAllowed ? settings : undefined;
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
      const used = await useLogin(state, browserToken, 'oidc');
      if (!used) throw ssoNotStarted();
      const { transaction, settings } = used;
      return recordRefusals(options, settings, transaction.purpose, async (checks) => {
        const answer = { parameters, secrets: transaction.secrets };
        const identity = await oidc.readAnswer(oidcSettings(settings, checks), answer, checks);
        checkFreshness(transaction, identity.authenticatedAt, checks);
        return complete(options, { settings, transaction, identity, browserToken }, { checks, client });
      });
    },

    async finishSaml({ samlResponse, relayState, serviceProviderId, browserToken, redirectTo }, client) {
      const inspection = decode(samlResponse);
      const used = relayState === undefined ? undefined : await useLogin(relayState, browserToken, 'saml');
      if (used) {
        const { transaction, settings } = used;
        return recordRefusals(options, settings, transaction.purpose, async (checks) => {
          const isOwn = serviceProviderId === null || serviceProviderId === settings.serviceProviderId;
          checks.require('destination', isOwn, 'the address of another configuration');
          const provider = addressed(settings, serviceProviderId);
          const answer = { inspection, provider, requestId: transaction.secrets.requestId };
          const identity = await saml.readAnswer(settings.idpMetadataXml, answer, checks);
          checkFreshness(transaction, identity.authenticatedAt, checks);
          return complete(options, { settings, transaction, identity, browserToken }, { checks, client });
        });
      }
      const settings = await findIdpInitiated(inspection, serviceProviderId);
      if (!settings) throw ssoNotStarted();
      return recordRefusals(options, settings, 'confirm', async (checks) => {
        const provider = addressed(settings, serviceProviderId);
        const answer = { inspection, provider, requestId: null };
        const identity = await saml.readAnswer(settings.idpMetadataXml, answer, checks);
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

    async findServiceProvider(organizationId) {
      const [row] = await database.peopleTransaction(({ em }) =>
        em.execute<{ id: string }[]>(sql`
          select coalesce(c.replaces_id, c.id) as id from sso_configurations c
          join organizations o on o.id = c.org_id and o.deleted_at is null
          where c.org_id = ${organizationId} and c.type = 'saml'
          order by (c.status = 'active') desc, c.id desc limit 1`),
      );
      if (!row) throw notFound('SAML configuration of the organization', organizationId);
      return { ...saml.serviceProvider(row.id), sharedAcsUrl: saml.sharedAcsUrl };
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
        await linkIdentity(options, context, { settings, claims, userId: person.userId }, client);
        const authenticatedAt = claims.authenticatedAt === null ? null : new Date(claims.authenticatedAt);
        return signInIdentity(em, settings, { userId: person.userId, authenticatedAt }, client);
      }),
  };
}

/** What a transaction keeps until the identity provider answers. */
interface LoginSecrets extends OidcSecrets {
  /** Id of the SAML request. */
  requestId: string;
}

function decode(samlResponse: string): ResponseInspection {
  try {
    return decodeResponse(samlResponse, createSsoChecks());
  } catch (error) {
    throw error instanceof SsoRefusal ? ssoFailed(error.check) : error;
  }
}

/** Not signed yet: it only selects the configuration whose keys are tried. */
function findAudience({ assertion }: ResponseInspection): string | undefined {
  const conditions = assertion && onlyChild(assertion, ASSERTION, 'Conditions');
  const restriction = conditions && onlyChild(conditions, ASSERTION, 'AudienceRestriction');
  return textOf(restriction && onlyChild(restriction, ASSERTION, 'Audience'));
}

function oidcSettings({ id, issuer, clientId, clientSecret }: SsoSettings, checks: SsoChecks): OidcSettings {
  if (issuer === null || clientId === null || clientSecret === null)
    return checks.fail('provider', 'incomplete settings', 'issuer, client_id and client_secret');
  return { configurationId: id, issuer, clientId, clientSecret };
}
