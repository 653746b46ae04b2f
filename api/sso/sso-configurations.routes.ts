import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import type { KeyRenewal } from '../../domain/sso/key-renewal.ts';
import type { SsoActivationService } from '../../domain/sso/sso-activation.service.ts';
import type { SsoChange, SsoConfigurationService } from '../../domain/sso/sso-configuration.service.ts';
import type { SsoLoginService, SsoStart } from '../../domain/sso/sso-login.service.ts';
import type { Config } from '../../platform/config.ts';
import { invalid } from '../../platform/errors.ts';
import { type Lists, listOf, PageQuery } from '../lists.ts';
import type { Cookies } from '../plugins/cookies.ts';
import { changeProblems, id, NoContent, postProblems, problems, ref, strictObject } from '../schemas.ts';
import { serviceProviderUrls } from './service-provider-urls.ts';
import {
  CreateSsoConfiguration,
  presentSsoAttempt,
  presentSsoConfiguration,
  SsoAttemptRecord,
  SsoConfigurationRecord,
  SsoRedirect,
  UpdateSsoConfiguration,
} from './sso.schemas.ts';
import { createSsoCookies } from './sso-cookies.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** A test login that has begun. The identity provider is asked before the handler, outside its transaction. */
    ssoStart: SsoStart | undefined;
  }
}

export interface SsoConfigurationRouteDependencies {
  config: Config;
  ssoConfigurations: SsoConfigurationService;
  ssoActivations: SsoActivationService;
  ssoKeyRenewal: KeyRenewal;
  ssoLogins: SsoLoginService;
  lists: Lists;
  cookies: Cookies;
}

const Params = strictObject({ configurationId: id('Id of the configuration (sso_…).') });
const permission = 'sso:manage';
const change = { permission, readPermission: permission } as const;
const tags = ['SSO'];
const AFTER_TEST = '/settings/single-sign-on';

export const ssoConfigurationRoutes =
  (dependencies: SsoConfigurationRouteDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { config, ssoConfigurations, ssoActivations, ssoLogins, ssoKeyRenewal, lists } = dependencies;
    const urls = serviceProviderUrls(config);
    const ssoCookies = createSsoCookies(dependencies.cookies);
    app.decorateRequest('ssoStart');

    /** Outside the transaction of a request with an Idempotency-Key. */
    const prefetchMetadata = ({ body }: FastifyRequest) =>
      ssoConfigurations.prefetchMetadata((body as ChangeBody).idp_metadata_url ?? undefined);

    app.post(
      '/org/sso',
      {
        config: { ...change, prepare: prefetchMetadata },
        schema: {
          operationId: 'sso.create',
          summary: 'Configure single sign-on',
          description: 'Creates a draft: test it, then activate it.',
          tags,
          body: ref(CreateSsoConfiguration),
          response: { 201: ref(SsoConfigurationRecord), ...postProblems() },
        },
      },
      async ({ scope, body }, reply) => {
        const { type, name, domains } = body;
        const created = await ssoConfigurations.create(scope, { ...readChange(body), type, name, domains });
        reply.code(201);
        return presentSsoConfiguration(created, urls);
      },
    );

    app.get(
      '/org/sso',
      {
        config: { permission },
        schema: {
          operationId: 'sso.list',
          summary: 'List the SSO configurations of the organization',
          tags,
          querystring: PageQuery,
          response: { 200: listOf(ref(SsoConfigurationRecord)), ...problems() },
        },
      },
      async (request) =>
        lists.present(request, await ssoConfigurations.list(request.scope, lists.read(request)), (row) =>
          presentSsoConfiguration(row, urls),
        ),
    );

    app.patch(
      '/org/sso/:configurationId',
      {
        config: { ...change, prepare: prefetchMetadata },
        schema: {
          operationId: 'sso.update',
          summary: 'Change an SSO configuration',
          description:
            'Omitted fields stay. Of an active configuration, a new issuer, client or metadata waits as pending_changes until it is tested and activated; other fields take effect at once.',
          tags,
          params: Params,
          body: ref(UpdateSsoConfiguration),
          response: { 200: ref(SsoConfigurationRecord), ...changeProblems(422) },
        },
      },
      async ({ scope, params, body }) => {
        const { disabled, pending_changes: discarded, ...fields } = body;
        const alone = disabled ? 'disabled' : discarded === null ? 'pending_changes' : undefined;
        if (alone && Object.keys(body).length > 1)
          throw invalid(`/body/${alone}`, 'must not come with other fields', 'Send it alone.');
        const id = params.configurationId;
        const changed = disabled
          ? await ssoActivations.disable(scope, id)
          : discarded === null
            ? await ssoConfigurations.discard(scope, id)
            : await ssoConfigurations.update(scope, id, readChange(fields));
        return presentSsoConfiguration(changed, urls);
      },
    );

    app.delete(
      '/org/sso/:configurationId',
      {
        config: { permission },
        schema: {
          operationId: 'sso.delete',
          summary: 'Delete an SSO configuration',
          description:
            'Ends the sessions it made. A later configuration of the same identity provider knows its people.',
          tags,
          params: Params,
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async ({ scope, params }, reply) => {
        await ssoActivations.remove(scope, params.configurationId);
        return reply.code(204).send(null);
      },
    );

    app.post(
      '/org/sso/:configurationId/test',
      {
        config: {
          ...change,
          bodyMayBeEmpty: true,
          prepare: async (request) => {
            const { configurationId } = request.params as { configurationId: string };
            request.ssoStart = await ssoLogins.startTest(request.scope, configurationId, {
              redirectTo: AFTER_TEST,
              browserToken: ssoCookies.readBrowser(request),
            });
          },
        },
        schema: {
          operationId: 'sso.test',
          summary: 'Begin a test login',
          description:
            'The login only proves the configuration, with its pending changes if there are any: it makes no account and no session.',
          tags,
          params: Params,
          response: { 200: ref(SsoRedirect), ...postProblems() },
        },
      },
      async ({ ssoStart }, reply) => {
        if (ssoStart) ssoCookies.setBrowser(reply, ssoStart.browserToken);
        return { object: 'redirect' as const, redirect_url: ssoStart?.redirectUrl ?? '' };
      },
    );

    app.post(
      '/org/sso/:configurationId/activate',
      {
        config: { ...change, bodyMayBeEmpty: true },
        schema: {
          operationId: 'sso.activate',
          summary: 'Activate a tested SSO configuration',
          description:
            'Of an active configuration, its pending changes take effect. Any other active configuration is disabled; if its identity provider is another one, it stays usable for linking. All owners are informed.',
          tags,
          params: Params,
          response: { 200: ref(SsoConfigurationRecord), ...postProblems() },
        },
      },
      async ({ scope, params }) =>
        presentSsoConfiguration(await ssoActivations.activate(scope, params.configurationId), urls),
    );

    app.post(
      '/org/sso/:configurationId/refresh',
      {
        config: {
          ...change,
          bodyMayBeEmpty: true,
          prepare: ({ scope, params }) =>
            ssoKeyRenewal.readAgain(scope, (params as Static<typeof Params>).configurationId),
        },
        schema: {
          operationId: 'sso.refresh',
          summary: 'Read the metadata and keys of the identity provider again',
          description:
            'They are also read daily (SAML metadata with a URL) or every ten minutes (OIDC), and when an answer is signed with an unknown key. At most every half minute.',
          tags,
          params: Params,
          response: { 200: ref(SsoConfigurationRecord), ...postProblems() },
        },
      },
      async ({ scope, params }) =>
        presentSsoConfiguration(await ssoConfigurations.view(scope, params.configurationId), urls),
    );

    app.get(
      '/org/sso/:configurationId/attempts',
      {
        config: { permission },
        schema: {
          operationId: 'sso.listAttempts',
          summary: 'List the last 20 logins and tests of a configuration, each with its checks',
          description: 'Kept for seven days.',
          tags,
          params: Params,
          querystring: PageQuery,
          response: { 200: listOf(ref(SsoAttemptRecord)), ...problems() },
        },
      },
      async (request) =>
        lists.present(
          request,
          await ssoConfigurations.listAttempts(
            request.scope,
            request.params.configurationId,
            lists.read(request),
          ),
          presentSsoAttempt,
        ),
    );
    done();
  };

type ChangeBody = Omit<Static<typeof UpdateSsoConfiguration>, 'disabled' | 'pending_changes'>;

/** Null means that a field is not given, because the response has null for the fields of the other type. */
function readChange(body: ChangeBody): SsoChange {
  const change = {
    name: body.name,
    domains: body.domains,
    defaultRole: body.default_role,
    issuer: body.issuer,
    clientId: body.client_id,
    clientSecret: body.client_secret,
    idpMetadataXml: body.idp_metadata_xml,
    idpMetadataUrl: body.idp_metadata_url,
    allowIdpInitiated: body.allow_idp_initiated,
  };
  return Object.fromEntries(
    Object.entries(change).filter(([, value]) => value !== undefined && value !== null),
  );
}
