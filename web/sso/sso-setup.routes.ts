import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { clientOf } from '../../api/people/client-of.ts';
import type { Cookies } from '../../api/plugins/cookies.ts';
import { enumOf, strictObject } from '../../api/schemas.ts';
import { serviceProviderUrls } from '../../api/sso/service-provider-urls.ts';
import { createSsoCookies } from '../../api/sso/sso-cookies.ts';
import { SSO_CHECKS } from '../../domain/sso/sso-checks.ts';
import type { SsoRole } from '../../domain/sso/sso-configuration.entity.ts';
import {
  SETUP_SESSION_SECONDS,
  type SetupGuest,
  type SsoSetupService,
} from '../../domain/sso/sso-setup.service.ts';
import type { Config } from '../../platform/config.ts';
import type { AppError } from '../../platform/errors.ts';
import { enteredText, Token, TokenQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { OIDC_FIELDS, readOidcForm, readSamlForm, SAML_FIELDS } from './sso-forms.ts';

export interface SsoSetupPageDependencies {
  pages: Pages;
  config: Config;
  cookies: Cookies;
  ssoSetup: SsoSetupService;
}

const COOKIE = 'sso-setup';
const PATH = '/sso-setup';
/** A guest makes no one an administrator. */
const ROLES = ['developer', 'viewer'] as const satisfies readonly SsoRole[];
const role = Type.Optional(enumOf(ROLES));
const config = { public: true } as const;

/** The page behind a set-up link, for a person outside the organization. Opening it uses nothing up. */
export const ssoSetupPages =
  (dependencies: SsoSetupPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, cookies, ssoSetup } = dependencies;
    const urls = serviceProviderUrls(dependencies.config);
    const ssoCookies = createSsoCookies(cookies);

    const guestOf = (request: FastifyRequest): SetupGuest => ({
      sessionToken: cookies.read(request, COOKIE),
      client: clientOf(request),
    });

    async function show(request: FastifyRequest, reply: FastifyReply, problem?: AppError) {
      const setup = await ssoSetup.read(guestOf(request));
      return pages.send(request, reply, {
        template: 'sso/sso-setup',
        title: `Single sign-on for ${setup.organizationName}`,
        data: {
          ...setup,
          sso: setup.configuration,
          roles: ROLES,
          urls,
          explanations: SSO_CHECKS,
        },
        problem,
      });
    }

    /** The link uses nothing up before the guest has pressed its button, because programs that scan mail open it, too. */
    async function open(request: FastifyRequest, reply: FastifyReply, token: string, problem?: AppError) {
      const link = token === '' ? undefined : await ssoSetup.preview(token);
      if (!link) return show(request, reply, problem);
      return pages.send(request, reply, {
        template: 'sso/sso-setup-start',
        title: `Single sign-on for ${link.organizationName}`,
        data: { ...link, token },
        problem,
      });
    }

    const saved = (_request: FastifyRequest, reply: FastifyReply) => pages.seeOther(reply, PATH, 'saved');

    app.get(
      PATH,
      { config, schema: { operationId: 'pages.ssoSetup', querystring: TokenQuery } },
      async (request, reply) => open(request, reply, request.query.token),
    );

    pages.form(app, PATH, {
      config,
      schema: { operationId: 'pages.startSsoSetup', body: strictObject({ token: Token }) },
      work: (request) => ssoSetup.exchange(request.body.token, clientOf(request)),
      show: (request, reply, problem) => open(request, reply, enteredText(request, 'token'), problem),
      done(_request, reply, sessionToken) {
        cookies.set(reply, COOKIE, sessionToken, { maxAgeSeconds: SETUP_SESSION_SECONDS });
        return pages.seeOther(reply, PATH);
      },
    });

    pages.form(app, `${PATH}/oidc`, {
      config,
      schema: { operationId: 'pages.setUpOidc', body: strictObject({ ...OIDC_FIELDS, default_role: role }) },
      work: (request) => ssoSetup.save(guestOf(request), readOidcForm(request.body)),
      show,
      done: saved,
    });

    pages.form(app, `${PATH}/saml`, {
      config,
      schema: { operationId: 'pages.setUpSaml', body: strictObject({ ...SAML_FIELDS, default_role: role }) },
      work: (request) => ssoSetup.save(guestOf(request), readSamlForm(request.body)),
      show,
      done: saved,
    });

    pages.form(app, `${PATH}/test`, {
      config,
      schema: { operationId: 'pages.testSsoSetup', body: strictObject({}) },
      work: (request) => ssoSetup.startTest(guestOf(request), ssoCookies.readBrowser(request)),
      show,
      done(request, reply, { redirectUrl, browserToken }) {
        ssoCookies.setBrowser(reply, browserToken);
        return pages.leave(request, reply, { url: redirectUrl, name: 'the identity provider' });
      },
    });
    done();
  };
