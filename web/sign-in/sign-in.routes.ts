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
import { PageQuery, Token, TokenQuery } from '../shell/forms.ts';
import { type Pages, rejectionOf } from '../shell/pages.ts';

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

    app.post(
      '/login',
      {
        config: { public: true },
        schema: {
          operationId: 'pages.submitLogin',
          body: strictObject({ email: text(254), password: text(256), next: Next }),
        },
      },
      async (request, reply) => {
        const { email, password, next } = request.body;
        const signingIn = signIns.signInByPassword({ email, password }, browserClientOf(request, cookies));
        const problem = await rejectionOf(signingIn);
        if (problem) return showLogin(request, reply, { next, email, problem });
        const { signIn } = await signingIn;
        return browserSignIn.finish(reply, signIn, localPath(next));
      },
    );

    app.post(
      '/login/passkey',
      {
        config: { public: true },
        schema: {
          operationId: 'pages.submitPasskey',
          body: strictObject({ response: PasskeyField, next: Next }),
        },
      },
      async (request, reply) => {
        const { response, next } = request.body;
        const signIn = async () =>
          passkeySignIns.signIn(readAssertion(response), browserClientOf(request, cookies));
        const signingIn = signIn();
        const problem = await rejectionOf(signingIn);
        if (problem) return showLogin(request, reply, { next, problem });
        return browserSignIn.finish(reply, (await signingIn).signIn, localPath(next));
      },
    );

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

    app.post(
      '/login/mfa',
      {
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
      },
      async (request, reply) => {
        const { method, code = '', response = '', next } = request.body;
        const pending = browserSignIn.readPendingMfa(request);
        if (!pending) return pages.seeOther(reply, '/login');
        const complete = async () =>
          mfaChallenges.complete(
            {
              mfaToken: pending.mfaToken,
              proof: method === 'webauthn' ? { method, response: readAssertion(response) } : { method, code },
            },
            browserClientOf(request, cookies),
          );
        const completing = complete();
        const problem = await rejectionOf(completing);
        if (problem) return showMfa(request, reply, { next, method, problem });
        return browserSignIn.finish(reply, (await completing).signIn, localPath(next));
      },
    );

    app.post(
      '/logout',
      { config: { person: 'any' }, schema: { operationId: 'pages.logout', body: Type.Object({}) } },
      async ({ person }, reply) => {
        await signIns.signOut(person);
        browserSession.end(reply);
        return pages.seeOther(reply, '/login', 'signed-out');
      },
    );

    app.get(
      '/forgot-password',
      { config: { public: true }, schema: { operationId: 'pages.forgotPassword', querystring: PageQuery } },
      async (request, reply) =>
        pages.send(request, reply, { template: 'sign-in/forgot-password', title: 'Reset your password' }),
    );

    app.post(
      '/forgot-password',
      {
        config: { public: true },
        schema: { operationId: 'pages.submitForgotPassword', body: strictObject({ email: text(254) }) },
      },
      async ({ body }, reply) => {
        await withSameDuration(passwords.requestReset(body.email));
        return pages.seeOther(reply, '/login', 'check-mail');
      },
    );

    app.get(
      '/reset-password',
      { config: { public: true }, schema: { operationId: 'pages.resetPassword', querystring: TokenQuery } },
      async (request, reply) =>
        pages.send(request, reply, {
          template: 'sign-in/reset-password',
          title: 'Choose a new password',
          data: { token: request.query.token },
        }),
    );

    app.post(
      '/reset-password',
      {
        config: { public: true },
        schema: {
          operationId: 'pages.submitResetPassword',
          body: strictObject({ token: Token, password: text(256) }),
        },
      },
      async (request, reply) => {
        const problem = await rejectionOf(passwords.reset(request.body, clientOf(request)));
        if (!problem) return pages.seeOther(reply, '/login', 'password-reset');
        return pages.send(request, reply, {
          template: 'sign-in/reset-password',
          title: 'Choose a new password',
          data: { token: request.body.token },
          problem,
        });
      },
    );
    done();
  };
