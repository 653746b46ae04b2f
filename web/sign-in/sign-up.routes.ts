import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { clientOf } from '../../api/people/client-of.ts';
import { withSameDuration } from '../../api/people/same-duration.ts';
import { SIGN_UP_COOKIE, SIGN_UP_COOKIE_SECONDS } from '../../api/people/sign-up-cookie.ts';
import type { BrowserSession } from '../../api/plugins/browser-session.ts';
import type { Cookies } from '../../api/plugins/cookies.ts';
import { strictObject, text } from '../../api/schemas.ts';
import type { OauthService } from '../../domain/oauth/oauth.service.ts';
import type { AccountService } from '../../domain/people/account.service.ts';
import type { SignUpService } from '../../domain/people/sign-up.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { PageQuery, Token, TokenQuery } from '../shell/forms.ts';
import { type Pages, rejectionOf } from '../shell/pages.ts';

export interface SignUpPageDependencies {
  pages: Pages;
  cookies: Cookies;
  browserSession: BrowserSession;
  signUps: SignUpService;
  accounts: AccountService;
  oauth: OauthService;
}

const NO_VALUES = { name: '', organization_name: '', email: '' };

/** Sign-up, and the pages behind the links that prove an address. Opening a link changes nothing. */
export const signUpPages =
  (dependencies: SignUpPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, cookies, browserSession, signUps, accounts, oauth } = dependencies;

    const showSignUp = (
      request: FastifyRequest,
      reply: FastifyReply,
      values: typeof NO_VALUES,
      problem?: AppError,
    ) =>
      pages.send(request, reply, {
        template: 'sign-in/signup',
        title: 'Sign up',
        data: { values, providers: oauth.providers() },
        problem,
      });

    app.get(
      '/signup',
      { config: { public: true }, schema: { operationId: 'pages.signUp', querystring: PageQuery } },
      async (request, reply) => showSignUp(request, reply, NO_VALUES),
    );

    app.post(
      '/signup',
      {
        config: { public: true },
        schema: {
          operationId: 'pages.submitSignUp',
          body: strictObject({
            name: text(200),
            organization_name: text(200),
            email: text(254),
            password: text(256),
          }),
        },
      },
      async (request, reply) => {
        const { organization_name: organizationName, ...input } = request.body;
        const starting = withSameDuration(signUps.start({ ...input, organizationName }, request));
        const problem = await rejectionOf(starting);
        if (problem) return showSignUp(request, reply, request.body, problem);
        const { browserToken } = await starting;
        cookies.set(reply, SIGN_UP_COOKIE, browserToken, { maxAgeSeconds: SIGN_UP_COOKIE_SECONDS });
        return pages.send(request, reply, {
          template: 'components/message',
          title: 'Check your mailbox',
          data: { text: `We have sent an email with a link to ${input.email}. The link works for 24 hours.` },
        });
      },
    );

    const showVerification = (
      request: FastifyRequest,
      reply: FastifyReply,
      token: string,
      problem?: AppError,
    ) =>
      pages.send(request, reply, {
        template: 'sign-in/verify-email',
        title: 'Confirm your address',
        data: {
          token,
          needsPassword: problem !== undefined || cookies.read(request, SIGN_UP_COOKIE) === undefined,
        },
        problem,
      });

    app.get(
      '/verify-email',
      { config: { public: true }, schema: { operationId: 'pages.verifyEmail', querystring: TokenQuery } },
      async (request, reply) => showVerification(request, reply, request.query.token),
    );

    app.post(
      '/verify-email',
      {
        config: { public: true },
        schema: {
          operationId: 'pages.submitVerifyEmail',
          body: strictObject({ token: Token, password: Type.Optional(text(256)) }),
        },
      },
      async (request, reply) => {
        const { token, password } = request.body;
        const browserToken = cookies.read(request, SIGN_UP_COOKIE);
        const verifying = signUps.verify(
          {
            token,
            ...(password === undefined ? {} : { password }),
            ...(browserToken === undefined ? {} : { browserToken }),
          },
          clientOf(request),
        );
        const problem = await rejectionOf(verifying);
        if (problem) return showVerification(request, reply, token, problem);
        const { session, apiKey } = await verifying;
        cookies.clear(reply, SIGN_UP_COOKIE);
        browserSession.start(reply, session);
        return pages.send(request, reply, {
          template: 'sign-in/welcome',
          title: 'Welcome',
          data: { apiKey },
        });
      },
    );

    app.get(
      '/change-email',
      { config: { public: true }, schema: { operationId: 'pages.changeEmail', querystring: TokenQuery } },
      async (request, reply) =>
        pages.send(request, reply, {
          template: 'account/change-email',
          title: 'Confirm your new address',
          data: { token: request.query.token },
        }),
    );

    app.post(
      '/change-email',
      {
        config: { public: true },
        schema: { operationId: 'pages.submitChangeEmail', body: strictObject({ token: Token }) },
      },
      async (request, reply) => {
        const { token } = request.body;
        const problem = await rejectionOf(accounts.confirmEmailChange(token, clientOf(request)));
        if (!problem) return pages.seeOther(reply, '/login', 'email-changed');
        return pages.send(request, reply, {
          template: 'account/change-email',
          title: 'Confirm your new address',
          data: { token },
          problem,
        });
      },
    );
    done();
  };
