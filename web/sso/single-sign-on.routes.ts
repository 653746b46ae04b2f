import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { Cookies } from '../../api/plugins/cookies.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { serviceProviderUrls } from '../../api/sso/service-provider-urls.ts';
import { createSsoCookies } from '../../api/sso/sso-cookies.ts';
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
import type { SsoLoginService } from '../../domain/sso/sso-login.service.ts';
import type { SsoSetupLinkService } from '../../domain/sso/sso-setup-link.service.ts';
import type { Config } from '../../platform/config.ts';
import type { AppError } from '../../platform/errors.ts';
import { settingsTabs } from '../settings/settings-tabs.ts';
import { OrganizationQuery } from '../shell/forms.ts';
import type { Notice } from '../shell/notices.ts';
import type { Pages } from '../shell/pages.ts';
import { OIDC_FIELDS, readOidcForm, readSamlForm, SAML_FIELDS } from './sso-forms.ts';

export interface SingleSignOnDependencies {
  pages: Pages;
  config: Config;
  cookies: Cookies;
  ssoLogins: SsoLoginService;
  ssoConfigurations: SsoConfigurationService;
  ssoActivations: SsoActivationService;
  ssoKeyRenewal: KeyRenewal;
  ssoSetupLinks: SsoSetupLinkService;
  policies: PolicyService;
  policyPreviews: PolicyPreviewService;
}

const PATH = '/settings/single-sign-on';
const ALL = { limit: 20, order: 'desc' } as const;
const LATEST_ATTEMPTS = { limit: 5, order: 'desc' } as const;
const permission = 'sso:manage';

const ById = strictObject({ configuration_id: text(64) });
const newRole = { default_role: enumOf(SSO_ROLES) };
const change = { default_role: Type.Optional(enumOf(SSO_ROLES)), configuration_id: text(64) };
const PolicyForm = strictObject({
  enforce_sso: Type.Optional(Type.Literal('on')),
  sso_satisfies_mfa: Type.Optional(Type.Literal('on')),
});
const readPolicy = (form: Static<typeof PolicyForm>) => ({
  enforceSso: form.enforce_sso === 'on',
  ssoSatisfiesMfa: form.sso_satisfies_mfa === 'on',
});

/** Set-up of signing in through the identity provider of the organization. */
export const singleSignOnPages =
  (dependencies: SingleSignOnDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, config, cookies, ssoLogins, ssoConfigurations, ssoSetupLinks } = dependencies;
    const { ssoActivations, ssoKeyRenewal, policies, policyPreviews } = dependencies;
    const ssoCookies = createSsoCookies(cookies);

    const withAttempts = async ({ scope }: FastifyRequest, configuration: SsoConfigurationView) => ({
      ...configuration,
      attempts: (await ssoConfigurations.listAttempts(scope, configuration.id, LATEST_ATTEMPTS)).items,
    });

    async function showWith(
      request: FastifyRequest,
      reply: FastifyReply,
      { problem, preview }: { problem?: AppError; preview?: object },
    ) {
      const { scope } = request;
      const { items } = await ssoConfigurations.list(scope, ALL);
      const { items: setupLinks } = await ssoSetupLinks.list(scope, ALL);
      return pages.send(request, reply, {
        template: 'sso/single-sign-on',
        title: 'Settings',
        problem,
        data: {
          tabs: settingsTabs(pages, request),
          organizationId: scope.organizationId,
          configurations: await Promise.all(items.map((row) => withAttempts(request, row))),
          setupLinks,
          roles: SSO_ROLES,
          urls: serviceProviderUrls(config),
          policies: scope.permissions.has('policies:manage') ? await policies.get(scope) : undefined,
          preview,
          entered: preview && request.body,
          explanations: SSO_CHECKS,
          now: new Date(),
        },
        apiCall: { path: '/org/sso' },
      });
    }
    const show = (request: FastifyRequest, reply: FastifyReply, problem?: AppError) =>
      showWith(request, reply, problem ? { problem } : {});
    const saved =
      (notice: Notice = 'saved') =>
      (request: FastifyRequest, reply: FastifyReply) =>
        pages.seeOther(reply, pages.link(request, PATH), notice);

    app.get(
      '/settings/single-sign-on',
      { config: { permission }, schema: { operationId: 'pages.sso', querystring: OrganizationQuery } },
      async (request, reply) => show(request, reply),
    );

    pages.form(app, `${PATH}/oidc`, {
      config: { permission },
      schema: { operationId: 'pages.createOidc', body: strictObject({ ...OIDC_FIELDS, ...newRole }) },
      work: ({ scope, body }) => ssoConfigurations.create(scope, readOidcForm(body)),
      show,
      done: saved(),
    });

    pages.form(app, `${PATH}/saml`, {
      config: { permission },
      schema: { operationId: 'pages.createSaml', body: strictObject({ ...SAML_FIELDS, ...newRole }) },
      work: ({ scope, body }) => ssoConfigurations.create(scope, readSamlForm(body)),
      show,
      done: saved(),
    });

    const update = (
      { scope }: FastifyRequest,
      configurationId: string,
      { type: _, ...fields }: NewSsoConfiguration,
    ) => ssoConfigurations.update(scope, configurationId, fields);

    pages.form(app, `${PATH}/oidc/change`, {
      config: { permission },
      schema: { operationId: 'pages.changeOidc', body: strictObject({ ...OIDC_FIELDS, ...change }) },
      work: (request) => update(request, request.body.configuration_id, readOidcForm(request.body)),
      show,
      done: saved(),
    });

    pages.form(app, `${PATH}/saml/change`, {
      config: { permission },
      schema: { operationId: 'pages.changeSaml', body: strictObject({ ...SAML_FIELDS, ...change }) },
      work: (request) => update(request, request.body.configuration_id, readSamlForm(request.body)),
      show,
      done: saved(),
    });

    pages.form(app, `${PATH}/policy`, {
      config: { permission: 'policies:manage' },
      schema: { operationId: 'pages.updateSsoPolicy', body: PolicyForm },
      work: ({ scope, body }) => policies.update(scope, readPolicy(body)),
      show,
      done: saved(),
    });

    pages.form(app, `${PATH}/policy/preview`, {
      config: { permission: 'policies:manage', alsoRequires: permission },
      schema: { operationId: 'pages.previewSsoPolicy', body: PolicyForm },
      work: ({ scope, body }) => policyPreviews.preview(scope, readPolicy(body)),
      show,
      done: (request, reply, preview) => showWith(request, reply, { preview }),
    });

    pages.form(app, `${PATH}/setup-links`, {
      config: { permission },
      schema: { operationId: 'pages.createSsoSetupLink', body: strictObject({ email: text(254) }) },
      work: ({ scope, body }) => ssoSetupLinks.create(scope, { email: body.email.trim() || undefined }),
      show,
      done(request, reply, { url, expiresAt }) {
        if (request.body.email.trim() !== '') return saved('setup-link-sent')(request, reply);
        return pages.send(request, reply, {
          template: 'sso/sso-setup-link',
          title: 'The set-up link',
          data: { url, expiresAt },
        });
      },
    });

    pages.form(app, `${PATH}/setup-links/revoke`, {
      config: { permission },
      schema: {
        operationId: 'pages.revokeSsoSetupLink',
        body: strictObject({ setup_link_id: text(64) }),
      },
      work: ({ scope, body }) => ssoSetupLinks.revoke(scope, body.setup_link_id),
      show,
      done: saved(),
    });

    pages.form(app, `${PATH}/test`, {
      config: { permission },
      schema: { operationId: 'pages.testSso', body: ById },
      work: (request) =>
        ssoLogins.startTest(request.scope, request.body.configuration_id, {
          redirectTo: `${PATH}?org=${request.scope.organizationId}`,
          browserToken: ssoCookies.readBrowser(request),
        }),
      show,
      done(request, reply, { redirectUrl, browserToken }) {
        ssoCookies.setBrowser(reply, browserToken);
        return pages.leave(request, reply, { url: redirectUrl, name: 'the identity provider' });
      },
    });

    for (const [path, operationId, act] of [
      ['activate', 'pages.activateSso', ssoActivations.activate],
      ['disable', 'pages.disableSso', ssoActivations.disable],
      ['delete', 'pages.deleteSso', ssoActivations.remove],
      ['discard', 'pages.discardSso', ssoConfigurations.discard],
      ['refresh', 'pages.refreshSso', ssoKeyRenewal.readAgain],
    ] as const)
      pages.form(app, `${PATH}/${path}`, {
        config: { permission },
        schema: { operationId, body: ById },
        work: async ({ scope, body }) => {
          await act(scope, body.configuration_id);
        },
        show,
        done: saved(),
      });
    done();
  };
