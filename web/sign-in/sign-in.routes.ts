import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { BrowserSignIn } from '../../api/people/browser-sign-in.ts';
import { browserClientOf, clientOf } from '../../api/people/client-of.ts';
import { localPath } from '../../api/people/local-path.ts';
import { AssertionResponse } from '../../api/people/passkeys.schemas.ts';
import { withSameDuration } from '../../api/people/same-duration.ts';
import type { BrowserSession } from '../../api/plugins/browser-session.ts';
import type { Cookies } from '../../api/plugins/cookies.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { OauthService } from '../../domain/oauth/oauth.service.ts';
import type { MfaChallengeService } from '../../domain/people/mfa-challenge.service.ts';
import type { PasskeySignInService } from '../../domain/people/passkeys/passkey-sign-in.service.ts';
import type { AuthenticationResponseJSON } from '../../domain/people/passkeys/webauthn-ceremonies.ts';
import type { PasswordService } from '../../domain/people/password.service.ts';
import type { SignInService } from '../../domain/people/sign-in.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { PASSKEY_SCRIPTS } from '../account/account-page.ts';
import { PasskeyField, readPasskeyResponse } from '../account/passkey-response.ts';
import { enteredText, PageQuery, Token, TokenQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';

export interface SignInPageDependencies {
  pages: Pages;
  browserSignIn: BrowserSignIn;
  browserSession: BrowserSession;
  cookies: Cookies;
  signIns: SignInService;
  mfaChallenges: MfaChallengeService;
  passwords: PasswordService;
  passkeySignIns: PasskeySignInService;
  oauth: OauthService;
}

const Next = text(500, { default: '/overview' });

const readAssertion = (json: string) =>
  readPasskeyResponse(AssertionResponse, json) as AuthenticationResponseJSON;

export const signInPages =
  (dependencies: SignInPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, browserSignIn, browserSession, cookies, signIns, mfaChallenges, passwords } = dependencies;
    const { passkeySignIns, oauth } = dependencies;

    const showLogin = (
      request: FastifyRequest,
      reply: FastifyReply,
      { next, email = '', problem }: { next: string; email?: string; problem?: AppError | undefined },
    ) =>
      pages.send(request, reply, {
        template: 'sign-in/login',
        title: 'Sign in',
        data: { next: localPath(next), email, providers: oauth.providers(), scripts: PASSKEY_SCRIPTS },
        problem,
      });

    app.get(
      '/login',
      {
        config: { public: true },
        schema: { operationId: 'pages.login', querystring: PageQuery },
      },
      async (request, reply) => showLogin(request, reply, { next: request.query.next }),
    );

    const showLoginAgain = (request: FastifyRequest, reply: FastifyReply, problem: AppError) =>
      showLogin(request, reply, { next: nextOf(request), email: enteredText(request, 'email'), problem });

    pages.form(app, '/login', {
      config: { public: true },
      schema: {
        operationId: 'pages.submitLogin',
        body: strictObject({ email: text(254), password: text(256), next: Next }),
      },
      work: (request) => {
        const { email, password } = request.body;
        return signIns.signInByPassword({ email, password }, browserClientOf(request, cookies));
      },
      show: showLoginAgain,
      done: ({ body }, reply, { signIn }) => browserSignIn.finish(reply, signIn, localPath(body.next)),
    });

    pages.form(app, '/login/passkey', {
      config: { public: true },
      schema: {
        operationId: 'pages.submitPasskey',
        body: strictObject({ response: PasskeyField, next: Next }),
      },
      work: async (request) =>
        passkeySignIns.signIn(readAssertion(request.body.response), browserClientOf(request, cookies)),
      show: showLoginAgain,
      done: ({ body }, reply, { signIn }) => browserSignIn.finish(reply, signIn, localPath(body.next)),
    });

    const showMfa = (
      request: FastifyRequest,
      reply: FastifyReply,
      data: { next: string; method?: string; problem?: AppError | undefined },
    ) => {
      const pending = browserSignIn.readPendingMfa(request);
      if (!pending) return pages.seeOther(reply, '/login');
      return pages.send(request, reply, {
        template: 'sign-in/login-mfa',
        title: 'Second factor',
        data: {
          method: data.method,
          next: localPath(data.next),
          methods: pending.methods,
          scripts: PASSKEY_SCRIPTS,
        },
        problem: data.problem,
      });
    };

    app.get(
      '/login/mfa',
      { config: { public: true }, schema: { operationId: 'pages.mfa', querystring: PageQuery } },
      async (request, reply) => showMfa(request, reply, { next: request.query.next }),
    );

    pages.form(app, '/login/mfa', {
      config: { public: true },
      schema: {
        operationId: 'pages.submitMfa',
        body: strictObject({
          method: enumOf(['totp', 'webauthn', 'recovery_code']),
          code: Type.Optional(text(64)),
          response: Type.Optional(PasskeyField),
          next: Next,
        }),
      },
      work: async (request) => {
        const { method, code = '', response = '' } = request.body;
        const pending = browserSignIn.readPendingMfa(request);
        if (!pending) return undefined;
        return mfaChallenges.complete(
          {
            mfaToken: pending.mfaToken,
            proof: method === 'webauthn' ? { method, response: readAssertion(response) } : { method, code },
          },
          browserClientOf(request, cookies),
        );
      },
      show: (request, reply, problem) =>
        showMfa(request, reply, { next: nextOf(request), method: enteredText(request, 'method'), problem }),
      done: ({ body }, reply, completed) =>
        completed
          ? browserSignIn.finish(reply, completed.signIn, localPath(body.next))
          : pages.seeOther(reply, '/login'),
    });

    app.post(
      '/logout',
      { config: { person: 'any' }, schema: { operationId: 'pages.logout', body: Type.Object({}) } },
      async ({ person }, reply) => {
        await signIns.signOut(person);
        browserSession.end(reply);
        return pages.seeOther(reply, '/login', 'signed-out');
      },
    );

    const showForgotPassword = (request: FastifyRequest, reply: FastifyReply, problem?: AppError) =>
      pages.send(request, reply, {
        template: 'sign-in/forgot-password',
        title: 'Reset your password',
        problem,
      });

    app.get(
      '/forgot-password',
      { config: { public: true }, schema: { operationId: 'pages.forgotPassword', querystring: PageQuery } },
      async (request, reply) => showForgotPassword(request, reply),
    );

    pages.form(app, '/forgot-password', {
      config: { public: true },
      schema: { operationId: 'pages.submitForgotPassword', body: strictObject({ email: text(254) }) },
      work: ({ body }) => withSameDuration(passwords.requestReset(body.email)),
      show: showForgotPassword,
      done: (_request, reply) => pages.seeOther(reply, '/login', 'check-mail'),
    });

    const showReset = (request: FastifyRequest, reply: FastifyReply, token: string, problem?: AppError) =>
      pages.send(request, reply, {
        template: 'sign-in/reset-password',
        title: 'Choose a new password',
        data: { token },
        problem,
      });

    app.get(
      '/reset-password',
      { config: { public: true }, schema: { operationId: 'pages.resetPassword', querystring: TokenQuery } },
      async (request, reply) => showReset(request, reply, request.query.token),
    );

    pages.form(app, '/reset-password', {
      config: { public: true },
      schema: {
        operationId: 'pages.submitResetPassword',
        body: strictObject({ token: Token, password: text(256) }),
      },
      work: (request) => passwords.reset(request.body, clientOf(request)),
      show: (request, reply, problem) => showReset(request, reply, enteredText(request, 'token'), problem),
      done: (_request, reply) => pages.seeOther(reply, '/login', 'password-reset'),
    });
    done();
  };

const nextOf = (request: FastifyRequest): string => localPath(enteredText(request, 'next'), '/overview');
