import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { BrowserSignIn } from '../../api/people/browser-sign-in.ts';
import { clientOf } from '../../api/people/client-of.ts';
import { localPath } from '../../api/people/local-path.ts';
import type { Cookies } from '../../api/plugins/cookies.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { serviceProviderUrls } from '../../api/sso/service-provider-urls.ts';
import { createSsoCookies, LINK_PAGE } from '../../api/sso/sso-cookies.ts';
import type { PolicyPreviewService } from '../../domain/people/policy-preview.service.ts';
import type { PolicyService } from '../../domain/policies/policy.service.ts';
import type { KeyRenewal } from '../../domain/sso/key-renewal.ts';
import type { SsoActivationService } from '../../domain/sso/sso-activation.service.ts';
import { SSO_CHECKS } from '../../domain/sso/sso-checks.ts';
import { SSO_ROLES } from '../../domain/sso/sso-configuration.entity.ts';
import type {
  NewSsoConfiguration,
  SsoConfigurationService,
  SsoConfigurationView,
} from '../../domain/sso/sso-configuration.service.ts';
import type { SsoLinkService } from '../../domain/sso/sso-link.service.ts';
import type { SsoLoginService } from '../../domain/sso/sso-login.service.ts';
import type { SsoSetupLinkService } from '../../domain/sso/sso-setup-link.service.ts';
import type { Config } from '../../platform/config.ts';
import type { AppError } from '../../platform/errors.ts';
import { formatTime } from '../shell/formats.ts';
import { OrganizationQuery, PageQuery } from '../shell/forms.ts';
import type { Notice } from '../shell/notices.ts';
import { type Pages, rejectionOf } from '../shell/pages.ts';
import { OIDC_FIELDS, readOidcForm, readSamlForm, SAML_FIELDS } from './sso-forms.ts';

export interface SsoPageDependencies {
  pages: Pages;
  browserSignIn: BrowserSignIn;
  config: Config;
  cookies: Cookies;
  ssoLogins: SsoLoginService;
  ssoLinks: SsoLinkService;
  ssoConfigurations: SsoConfigurationService;
  ssoActivations: SsoActivationService;
  ssoKeyRenewal: KeyRenewal;
  ssoSetupLinks: SsoSetupLinkService;
  policies: PolicyService;
  policyPreviews: PolicyPreviewService;
}

const ALL = { limit: 20, order: 'desc' } as const;
const LATEST_ATTEMPTS = { limit: 5, order: 'desc' } as const;
const permission = 'sso:manage';

/** Signing in through the identity provider of an organization, and its set-up. */
export const ssoPages =
  (dependencies: SsoPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, browserSignIn, config, cookies, ssoLogins, ssoConfigurations, ssoSetupLinks } =
      dependencies;
    const { ssoLinks, ssoActivations, ssoKeyRenewal, policies, policyPreviews } = dependencies;
    const ssoCookies = createSsoCookies(cookies);

    const showLogin = (
      request: FastifyRequest,
      reply: FastifyReply,
      data: { next: string; organization?: string },
      problem?: AppError,
    ) =>
      pages.send(request, reply, {
        template: 'sign-in/login-sso',
        title: 'Sign in with single sign-on',
        data: { organization: '', ...data },
        problem,
      });

    app.get(
      '/login/sso',
      { config: { public: true }, schema: { operationId: 'pages.ssoLogin', querystring: PageQuery } },
      async (request, reply) => showLogin(request, reply, { next: localPath(request.query.next) }),
    );

    app.post(
      '/login/sso',
      {
        config: { public: true },
        schema: {
          operationId: 'pages.startSso',
          body: strictObject({
            organization: Type.Optional(text(254)),
            next: text(500, { default: '/overview' }),
            // The form of the sign-in page has them, too: its address finds the organization, the password is not read.
            email: Type.Optional(text(254)),
            password: Type.Optional(text(256)),
          }),
        },
      },
      async (request, reply) => {
        const organization = (request.body.organization ?? request.body.email ?? '').trim();
        const next = localPath(request.body.next);
        const starting = ssoLogins.start({
          organization,
          redirectTo: next,
          isFresh: false,
          browserToken: ssoCookies.readBrowser(request),
        });
        const problem = await rejectionOf(starting);
        if (problem) return showLogin(request, reply, { next, organization }, problem);
        const { redirectUrl, browserToken } = await starting;
        ssoCookies.setBrowser(reply, browserToken);
        return pages.leave(request, reply, { url: redirectUrl, name: 'your identity provider' });
      },
    );

    app.get(
      '/login/link',
      { config: { person: 'full' }, schema: { operationId: 'pages.ssoLink', querystring: PageQuery } },
      async (request, reply) =>
        pages.send(request, reply, { template: 'sign-in/login-link', title: 'Link your account' }),
    );

    app.post(
      '/login/link',
      { config: { person: 'fresh' }, schema: { operationId: 'pages.linkSso', body: strictObject({}) } },
      async (request, reply) => {
        const linking = ssoLinks.link(request.person, linkOf(request), clientOf(request));
        const problem = await rejectionOf(linking);
        if (problem)
          return pages.send(request, reply, {
            template: 'sign-in/login-link',
            title: 'Link your account',
            problem,
          });
        ssoCookies.clearLink(reply);
        return browserSignIn.finish(reply, (await linking).signIn, '/overview');
      },
    );

    const linkOf = (request: FastifyRequest) => ({
      token: ssoCookies.readLink(request) ?? '',
      browserToken: ssoCookies.readBrowser(request),
    });

    async function showFormer(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const choice = await ssoLinks.findLink(linkOf(request));
      if (!choice) return pages.seeOther(reply, '/login/sso');
      return pages.send(request, reply, {
        template: 'sign-in/login-former',
        title: 'Confirm who you are',
        data: { ...choice, linkPage: LINK_PAGE },
        problem,
      });
    }

    app.get(
      '/login/former',
      { config: { public: true }, schema: { operationId: 'pages.ssoFormer' } },
      async (request, reply) => showFormer(request, reply),
    );

    app.post(
      '/login/former',
      {
        config: { public: true },
        schema: {
          operationId: 'pages.linkByFormer',
          body: strictObject({ configuration_id: text(64) }),
        },
      },
      async (request, reply) => {
        const starting = ssoLinks.startLink(linkOf(request), request.body.configuration_id);
        const problem = await rejectionOf(starting);
        if (problem) return showFormer(request, reply, problem);
        const { redirectUrl, browserToken } = await starting;
        ssoCookies.setBrowser(reply, browserToken);
        return pages.leave(request, reply, { url: redirectUrl, name: 'your former identity provider' });
      },
    );

    app.post(
      '/login/former/join',
      { config: { public: true }, schema: { operationId: 'pages.joinBySso', body: strictObject({}) } },
      async (request, reply) => {
        const joining = ssoLinks.join(linkOf(request), clientOf(request));
        const problem = await rejectionOf(joining);
        if (problem) return showFormer(request, reply, problem);
        ssoCookies.clearLink(reply);
        return browserSignIn.finish(reply, (await joining).signIn, '/overview');
      },
    );

    async function showConfigurations(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const { scope } = request;
      const { items } = await ssoConfigurations.list(scope, ALL);
      const { items: setupLinks } = await ssoSetupLinks.list(scope, ALL);
      return pages.send(request, reply, {
        template: 'sso/organization-sso',
        title: 'Single sign-on',
        problem,
        data: {
          organizationId: scope.organizationId,
          configurations: await Promise.all(items.map((row) => withAttempts(request, row))),
          setupLinks,
          roles: SSO_ROLES,
          urls: serviceProviderUrls(config),
          policies: scope.permissions.has('policies:manage') ? await policies.get(scope) : undefined,
          explanations: SSO_CHECKS,
          time: formatTime,
          now: new Date(),
        },
      });
    }

    const withAttempts = async ({ scope }: FastifyRequest, configuration: SsoConfigurationView) => ({
      ...configuration,
      attempts: (await ssoConfigurations.listAttempts(scope, configuration.id, LATEST_ATTEMPTS)).items,
    });

    app.get(
      '/organization/sso',
      { config: { permission }, schema: { operationId: 'pages.sso', querystring: OrganizationQuery } },
      async (request, reply) => showConfigurations(request, reply),
    );

    app.post(
      '/organization/sso/oidc',
      {
        config: { permission },
        schema: {
          operationId: 'pages.createOidc',
          querystring: OrganizationQuery,
          body: strictObject({ ...OIDC_FIELDS, default_role: enumOf(SSO_ROLES) }),
        },
      },
      async (request, reply) =>
        answer(request, reply, ssoConfigurations.create(request.scope, readOidcForm(request.body))),
    );

    app.post(
      '/organization/sso/saml',
      {
        config: { permission },
        schema: {
          operationId: 'pages.createSaml',
          querystring: OrganizationQuery,
          body: strictObject({ ...SAML_FIELDS, default_role: enumOf(SSO_ROLES) }),
        },
      },
      async (request, reply) =>
        answer(request, reply, ssoConfigurations.create(request.scope, readSamlForm(request.body))),
    );

    const PolicyForm = strictObject({
      enforce_sso: Type.Optional(Type.Literal('on')),
      sso_satisfies_mfa: Type.Optional(Type.Literal('on')),
    });
    const readPolicy = (form: Static<typeof PolicyForm>) => ({
      enforceSso: form.enforce_sso === 'on',
      ssoSatisfiesMfa: form.sso_satisfies_mfa === 'on',
    });

    app.post(
      '/organization/sso/policy',
      {
        config: { permission: 'policies:manage' },
        schema: { operationId: 'pages.updateSsoPolicy', querystring: OrganizationQuery, body: PolicyForm },
      },
      async (request, reply) =>
        answer(request, reply, policies.update(request.scope, readPolicy(request.body))),
    );

    app.post(
      '/organization/sso/policy/preview',
      {
        config: { permission: 'policies:manage' },
        schema: { operationId: 'pages.previewSsoPolicy', querystring: OrganizationQuery, body: PolicyForm },
      },
      async (request, reply) =>
        pages.send(request, reply, {
          template: 'settings/policy-preview',
          title: 'Who would not get in',
          data: {
            ...(await policyPreviews.preview(request.scope, readPolicy(request.body))),
            back: `/organization/sso?org=${request.scope.organizationId}`,
          },
        }),
    );

    async function answer(
      request: FastifyRequest,
      reply: FastifyReply,
      work: Promise<unknown>,
      notice: Notice = 'saved',
    ) {
      const problem = await rejectionOf(work);
      if (problem) return showConfigurations(request, reply, problem);
      return pages.seeOther(reply, `/organization/sso?org=${request.scope.organizationId}`, notice);
    }

    app.post(
      '/organization/sso/setup-links',
      {
        config: { permission },
        schema: {
          operationId: 'pages.createSsoSetupLink',
          querystring: OrganizationQuery,
          body: strictObject({ email: text(254) }),
        },
      },
      async (request, reply) => {
        const email = request.body.email.trim() || undefined;
        const creating = ssoSetupLinks.create(request.scope, { email });
        if (email !== undefined) return answer(request, reply, creating, 'setup-link-sent');
        const problem = await rejectionOf(creating);
        if (problem) return showConfigurations(request, reply, problem);
        const { url, expiresAt } = await creating;
        const { organizationId } = request.scope;
        return pages.send(request, reply, {
          template: 'sso/sso-setup-link',
          title: 'The set-up link',
          data: { url, until: formatTime(expiresAt), organizationId },
        });
      },
    );

    app.post(
      '/organization/sso/setup-links/revoke',
      {
        config: { permission },
        schema: {
          operationId: 'pages.revokeSsoSetupLink',
          querystring: OrganizationQuery,
          body: strictObject({ setup_link_id: text(64) }),
        },
      },
      async (request, reply) =>
        answer(request, reply, ssoSetupLinks.revoke(request.scope, request.body.setup_link_id)),
    );

    const ById = strictObject({ configuration_id: text(64) });
    const role = { default_role: Type.Optional(enumOf(SSO_ROLES)), configuration_id: text(64) };

    const saveChange = (
      request: FastifyRequest,
      reply: FastifyReply,
      { type: _, ...change }: NewSsoConfiguration,
    ) => {
      const { configuration_id: id } = request.body as { configuration_id: string };
      return answer(request, reply, ssoConfigurations.update(request.scope, id, change));
    };

    app.post(
      '/organization/sso/oidc/change',
      {
        config: { permission },
        schema: {
          operationId: 'pages.changeOidc',
          querystring: OrganizationQuery,
          body: strictObject({ ...OIDC_FIELDS, ...role }),
        },
      },
      async (request, reply) => saveChange(request, reply, readOidcForm(request.body)),
    );

    app.post(
      '/organization/sso/saml/change',
      {
        config: { permission },
        schema: {
          operationId: 'pages.changeSaml',
          querystring: OrganizationQuery,
          body: strictObject({ ...SAML_FIELDS, ...role }),
        },
      },
      async (request, reply) => saveChange(request, reply, readSamlForm(request.body)),
    );

    app.post(
      '/organization/sso/test',
      {
        config: { permission },
        schema: { operationId: 'pages.testSso', querystring: OrganizationQuery, body: ById },
      },
      async (request, reply) => {
        const starting = ssoLogins.startTest(request.scope, request.body.configuration_id, {
          redirectTo: `/organization/sso?org=${request.scope.organizationId}`,
          browserToken: ssoCookies.readBrowser(request),
        });
        const problem = await rejectionOf(starting);
        if (problem) return showConfigurations(request, reply, problem);
        const { redirectUrl, browserToken } = await starting;
        ssoCookies.setBrowser(reply, browserToken);
        return pages.leave(request, reply, { url: redirectUrl, name: 'the identity provider' });
      },
    );

    for (const [path, operationId, act] of [
      ['activate', 'pages.activateSso', ssoActivations.activate],
      ['disable', 'pages.disableSso', ssoActivations.disable],
      ['delete', 'pages.deleteSso', ssoActivations.remove],
      ['discard', 'pages.discardSso', ssoConfigurations.discard],
      ['refresh', 'pages.refreshSso', ssoKeyRenewal.readAgain],
    ] as const)
      app.post(
        `/organization/sso/${path}`,
        { config: { permission }, schema: { operationId, querystring: OrganizationQuery, body: ById } },
        async (request, reply) => answer(request, reply, act(request.scope, request.body.configuration_id)),
      );
    done();
  };
