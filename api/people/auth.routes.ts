import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { AccountService } from '../../domain/people/account.service.ts';
import type { PasswordService } from '../../domain/people/password.service.ts';
import type { SignInService } from '../../domain/people/sign-in.service.ts';
import type { SignUpService } from '../../domain/people/sign-up.service.ts';
import type { Cookies } from '../plugins/cookies.ts';
import { NoContent, postProblems, ref } from '../schemas.ts';
import {
  Accepted,
  ForgotPassword,
  MailedToken,
  presentSignIn,
  presentUser,
  ResetPassword,
  SignIn,
  SignInResponse,
  SignUp,
  SignUpAccepted,
  VerifiedSignUp,
  VerifyEmail,
} from './auth.schemas.ts';
import { browserClientOf, clientOf } from './client-of.ts';
import { withSameDuration } from './same-duration.ts';
import { SIGN_UP_COOKIE, SIGN_UP_COOKIE_SECONDS } from './sign-up-cookie.ts';

export interface AuthRouteDependencies {
  signUps: SignUpService;
  signIns: SignInService;
  passwords: PasswordService;
  accounts: AccountService;
  cookies: Cookies;
}

export const authRoutes =
  ({ signUps, signIns, passwords, accounts, cookies }: AuthRouteDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/auth/signup',
      {
        config: { public: true },
        schema: {
          operationId: 'auth.signUp',
          summary: 'Sign up: mails a token that proves the address',
          description:
            'The account is created with the token: POST /auth/verify-email. The answer is the same whether or not the address has an account.',
          tags: ['Sign-in'],
          body: ref(SignUp),
          response: { 202: ref(SignUpAccepted), ...postProblems() },
        },
      },
      async ({ body, ip }, reply) => {
        const { organization_name: organizationName, ...input } = body;
        const { browserToken } = await withSameDuration(
          signUps.start({ ...input, organizationName }, { ip }),
        );
        cookies.set(reply, SIGN_UP_COOKIE, browserToken, { maxAgeSeconds: SIGN_UP_COOKIE_SECONDS });
        return reply.code(202).send({ object: 'acknowledgement', status: 'verification_sent' });
      },
    );

    app.post(
      '/auth/verify-email',
      {
        config: { public: true },
        schema: {
          operationId: 'auth.verifyEmail',
          summary: 'Finish a sign-up',
          description:
            'Creates the user, an organization with the environments production and sandbox, and its first API key.',
          tags: ['Sign-in'],
          body: ref(VerifyEmail),
          response: { 200: ref(VerifiedSignUp), ...postProblems() },
        },
      },
      async (request, reply) => {
        const { token, password } = request.body;
        const browserToken = cookies.read(request, SIGN_UP_COOKIE);
        const verified = await signUps.verify(
          {
            token,
            ...(password === undefined ? {} : { password }),
            ...(browserToken === undefined ? {} : { browserToken }),
          },
          clientOf(request),
        );
        cookies.clear(reply, SIGN_UP_COOKIE);
        reply.rememberDevice(verified);
        const account = await accounts.get(verified.userId);
        return {
          object: 'verified_sign_up' as const,
          token: verified.session.token,
          expires_at: verified.session.expiresAt.toISOString(),
          enrollment_only: false,
          user: presentUser(account),
          organization: { object: 'organization' as const, id: verified.organizationId },
          api_key: verified.apiKey,
        };
      },
    );

    app.post(
      '/auth/login',
      {
        config: { public: true },
        schema: {
          operationId: 'auth.signIn',
          summary: 'Sign in by password',
          description:
            'Returns a session, or mfa_required with a token for POST /auth/mfa/challenge. Repeated failures delay the next attempt (429).',
          tags: ['Sign-in'],
          body: ref(SignIn),
          response: { 200: SignInResponse, ...postProblems() },
        },
      },
      async (request, reply) => {
        const { userId, signIn } = await signIns.signInByPassword(
          request.body,
          browserClientOf(request, cookies),
        );
        reply.rememberDevice(signIn);
        return presentSignIn(signIn, await accounts.get(userId));
      },
    );

    app.post(
      '/auth/logout',
      {
        config: { person: 'any', bodyMayBeEmpty: true },
        schema: {
          operationId: 'auth.signOut',
          summary: 'End the session of the request',
          tags: ['Sign-in'],
          response: { 204: NoContent, ...postProblems() },
        },
      },
      async ({ person }, reply) => {
        await signIns.signOut(person);
        return reply.code(204).send(null);
      },
    );

    app.post(
      '/auth/password/forgot',
      {
        config: { public: true },
        schema: {
          operationId: 'auth.forgotPassword',
          summary: 'Mail a token to reset the password',
          description: 'The answer is the same whether or not an account has the address.',
          tags: ['Sign-in'],
          body: ref(ForgotPassword),
          response: {
            202: ref(Accepted),
            ...postProblems(),
          },
        },
      },
      async ({ body }, reply) => {
        await withSameDuration(passwords.requestReset(body.email));
        return reply.code(202).send({ object: 'acknowledgement', status: 'accepted' });
      },
    );

    app.post(
      '/auth/password/reset',
      {
        config: { public: true },
        schema: {
          operationId: 'auth.resetPassword',
          summary: 'Set a new password with a mailed token',
          description: 'Ends all sessions and connections. Sign in afterwards.',
          tags: ['Sign-in'],
          body: ref(ResetPassword),
          response: { 204: NoContent, ...postProblems() },
        },
      },
      async (request, reply) => {
        await passwords.reset(request.body, clientOf(request));
        return reply.code(204).send(null);
      },
    );

    app.post(
      '/auth/change-email/confirm',
      {
        config: { public: true },
        schema: {
          operationId: 'auth.confirmEmailChange',
          summary: 'Confirm a new email address with a mailed token',
          description: 'Ends all sessions and connections. Sign in with the new address afterwards.',
          tags: ['Sign-in'],
          body: ref(MailedToken),
          response: { 204: NoContent, ...postProblems() },
        },
      },
      async (request, reply) => {
        await accounts.confirmEmailChange(request.body.token, clientOf(request));
        return reply.code(204).send(null);
      },
    );
    done();
  };
