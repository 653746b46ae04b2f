import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { clientOf } from '../../api/people/client-of.ts';
import { localPath } from '../../api/people/local-path.ts';
import { withSameDuration } from '../../api/people/same-duration.ts';
import { SIGN_UP_COOKIE, SIGN_UP_COOKIE_SECONDS } from '../../api/people/sign-up-cookie.ts';
import type { BrowserSession } from '../../api/plugins/browser-session.ts';
import type { Cookies } from '../../api/plugins/cookies.ts';
import { strictObject, text } from '../../api/schemas.ts';
import type { OauthService } from '../../domain/oauth/oauth.service.ts';
import type { AccountService } from '../../domain/people/account.service.ts';
import type { SignUpService } from '../../domain/people/sign-up.service.ts';
import type { AppError } from '../../platform/errors.ts';
import type { FirstKey } from '../overview/first-key.ts';
import { enteredText, PageQuery, Token, TokenQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';

export interface SignUpPageDependencies {
  pages: Pages;
  cookies: Cookies;
  browserSession: BrowserSession;
  firstKey: FirstKey;
  signUps: SignUpService;
  accounts: AccountService;
  oauth: OauthService;
}

/** Sign-up, and the pages behind the links that prove an address. Opening a link changes nothing. */
export const signUpPages =
  (dependencies: SignUpPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, cookies, browserSession, firstKey, signUps, accounts, oauth } = dependencies;

    const showSignUp = (request: FastifyRequest, reply: FastifyReply, problem?: AppError) =>
      pages.send(request, reply, {
        template: 'sign-in/signup',
        title: 'Sign up',
        data: {
          providers: oauth.providers(),
          next: localPath((request.query as { next?: string }).next, '/overview'),
        },
        problem,
      });

    app.get(
      '/signup',
      { config: { public: true }, schema: { operationId: 'pages.signUp', querystring: PageQuery } },
      async (request, reply) => showSignUp(request, reply),
    );

    pages.form(app, '/signup', {
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
      work: (request) => {
        const { organization_name: organizationName, ...input } = request.body;
        return withSameDuration(signUps.start({ ...input, organizationName }, request));
      },
      show: showSignUp,
      done: (request, reply, { browserToken }) => {
        cookies.set(reply, SIGN_UP_COOKIE, browserToken, { maxAgeSeconds: SIGN_UP_COOKIE_SECONDS });
        const { email } = request.body;
        return pages.send(request, reply, {
          template: 'components/message',
          title: 'Check your mailbox',
          data: { text: `We have sent an email with a link to ${email}. The link works for 24 hours.` },
        });
      },
    });

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

    pages.form(app, '/verify-email', {
      config: { public: true },
      schema: {
        operationId: 'pages.submitVerifyEmail',
        body: strictObject({ token: Token, password: Type.Optional(text(256)) }),
      },
      work: (request) => {
        const { token, password } = request.body;
        const browserToken = cookies.read(request, SIGN_UP_COOKIE);
        return signUps.verify(
          {
            token,
            ...(password === undefined ? {} : { password }),
            ...(browserToken === undefined ? {} : { browserToken }),
          },
          clientOf(request),
        );
      },
      show: (request, reply, problem) =>
        showVerification(request, reply, enteredText(request, 'token'), problem),
      done: (_request, reply, { session, organizationId, apiKey }) => {
        cookies.clear(reply, SIGN_UP_COOKIE);
        browserSession.start(reply, session);
        firstKey.keep(reply, { apiKey, organizationId, sessionId: session.id });
        return pages.seeOther(reply, '/overview');
      },
    });

    const showEmailChange = (
      request: FastifyRequest,
      reply: FastifyReply,
      token: string,
      problem?: AppError,
    ) =>
      pages.send(request, reply, {
        template: 'account/change-email',
        title: 'Confirm your new address',
        data: { token },
        problem,
      });

    app.get(
      '/change-email',
      { config: { public: true }, schema: { operationId: 'pages.changeEmail', querystring: TokenQuery } },
      async (request, reply) => showEmailChange(request, reply, request.query.token),
    );

    pages.form(app, '/change-email', {
      config: { public: true },
      schema: { operationId: 'pages.submitChangeEmail', body: strictObject({ token: Token }) },
      work: (request) => accounts.confirmEmailChange(request.body.token, clientOf(request)),
      show: (request, reply, problem) =>
        showEmailChange(request, reply, enteredText(request, 'token'), problem),
      done: (_request, reply) => pages.seeOther(reply, '/login', 'email-changed'),
    });
    done();
  };
