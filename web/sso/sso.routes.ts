import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { BrowserSignIn } from '../../api/people/browser-sign-in.ts';
import { clientOf } from '../../api/people/client-of.ts';
import { localPath } from '../../api/people/local-path.ts';
import type { Cookies } from '../../api/plugins/cookies.ts';
import { strictObject, text } from '../../api/schemas.ts';
import { createSsoCookies, LINK_PAGE } from '../../api/sso/sso-cookies.ts';
import type { SsoLinkService } from '../../domain/sso/sso-link.service.ts';
import type { SsoLoginService } from '../../domain/sso/sso-login.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { enteredText, PageQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';

export interface SsoPageDependencies {
  pages: Pages;
  browserSignIn: BrowserSignIn;
  cookies: Cookies;
  ssoLogins: SsoLoginService;
  ssoLinks: SsoLinkService;
}

/** Signing in through the identity provider of an organization. */
export const ssoPages =
  (dependencies: SsoPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, browserSignIn, cookies, ssoLogins, ssoLinks } = dependencies;
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

    pages.form(app, '/login/sso', {
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
      work: async (request) => {
        const organization = organizationOf(request);
        // The sign-in page leads here, too, before the person has entered an address.
        if (request.body.organization === undefined && organization === '') return undefined;
        return ssoLogins.start({
          organization,
          redirectTo: localPath(request.body.next),
          isFresh: false,
          browserToken: ssoCookies.readBrowser(request),
        });
      },
      show: (request, reply, problem) =>
        showLogin(
          request,
          reply,
          {
            next: localPath(enteredText(request, 'next'), '/overview'),
            organization: organizationOf(request),
          },
          problem,
        ),
      done(request, reply, started) {
        if (!started) return showLogin(request, reply, { next: localPath(request.body.next) });
        ssoCookies.setBrowser(reply, started.browserToken);
        return pages.leave(request, reply, { url: started.redirectUrl, name: 'your identity provider' });
      },
    });

    const showLink = (request: FastifyRequest, reply: FastifyReply, problem?: AppError) =>
      pages.send(request, reply, { template: 'sign-in/login-link', title: 'Link your account', problem });
    app.get(
      '/login/link',
      { config: { person: 'full' }, schema: { operationId: 'pages.ssoLink', querystring: PageQuery } },
      async (request, reply) => showLink(request, reply),
    );

    pages.form(app, '/login/link', {
      config: { person: 'fresh' },
      schema: { operationId: 'pages.linkSso', body: strictObject({}) },
      work: (request) => ssoLinks.link(request.person, linkOf(request), clientOf(request)),
      show: showLink,
      done(_request, reply, { signIn }) {
        ssoCookies.clearLink(reply);
        return browserSignIn.finish(reply, signIn, '/overview');
      },
    });

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

    pages.form(app, '/login/former', {
      config: { public: true },
      schema: { operationId: 'pages.linkByFormer', body: strictObject({ configuration_id: text(64) }) },
      work: (request) => ssoLinks.startLink(linkOf(request), request.body.configuration_id),
      show: showFormer,
      done(request, reply, { redirectUrl, browserToken }) {
        ssoCookies.setBrowser(reply, browserToken);
        return pages.leave(request, reply, { url: redirectUrl, name: 'your former identity provider' });
      },
    });

    pages.form(app, '/login/former/join', {
      config: { public: true },
      schema: { operationId: 'pages.joinBySso', body: strictObject({}) },
      work: (request) => ssoLinks.join(linkOf(request), clientOf(request)),
      show: showFormer,
      done(_request, reply, { signIn }) {
        ssoCookies.clearLink(reply);
        return browserSignIn.finish(reply, signIn, '/overview');
      },
    });
    done();
  };

const organizationOf = (request: FastifyRequest): string =>
  (enteredText(request, 'organization') || enteredText(request, 'email')).trim();
