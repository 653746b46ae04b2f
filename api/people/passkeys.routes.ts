import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { AccountService } from '../../domain/people/account.service.ts';
import type { PasskeyEnrollmentService } from '../../domain/people/passkeys/passkey-enrollment.service.ts';
import type { PasskeySignInService } from '../../domain/people/passkeys/passkey-sign-in.service.ts';
import type { Cookies } from '../plugins/cookies.ts';
import { postProblems, ref } from '../schemas.ts';
import { presentSignIn, SignInResponse } from './auth.schemas.ts';
import { browserClientOf } from './client-of.ts';
import { presentEnrollment } from './mfa.schemas.ts';
import {
  AssertionOptions,
  PasskeyRegistered,
  RegisterPasskey,
  RegistrationOptions,
  RequestAssertion,
  SignInByPasskey,
} from './passkeys.schemas.ts';

export interface PasskeyRouteDependencies {
  passkeyEnrollments: PasskeyEnrollmentService;
  passkeySignIns: PasskeySignInService;
  accounts: AccountService;
  cookies: Cookies;
}

export const passkeyRoutes =
  ({
    passkeyEnrollments,
    passkeySignIns,
    accounts,
    cookies,
  }: PasskeyRouteDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/auth/mfa/webauthn/register-options',
      {
        config: { person: 'any', bodyMayBeEmpty: true },
        schema: {
          operationId: 'mfa.startPasskey',
          summary: 'Begin to register a passkey',
          description:
            'Requires a sign-in within the last ten minutes. Pass the answer to navigator.credentials.create(), on a page of this service.',
          tags: ['MFA'],
          response: { 200: ref(RegistrationOptions), ...postProblems() },
        },
      },
      async ({ person }) => passkeyEnrollments.options(person),
    );

    app.post(
      '/auth/mfa/webauthn/register',
      {
        config: { person: 'any' },
        schema: {
          operationId: 'mfa.registerPasskey',
          summary: 'Register a passkey',
          description:
            'The passkey is a second factor, and also signs in alone. Requires a sign-in within the last ten minutes.',
          tags: ['MFA'],
          body: ref(RegisterPasskey),
          response: { 201: ref(PasskeyRegistered), ...postProblems() },
        },
      },
      async ({ person, body }, reply) => {
        const { enrollment, recoveryCodes } = await passkeyEnrollments.register(person, body);
        return reply.code(201).send({
          object: 'enrolled_factor',
          enrollment: presentEnrollment(enrollment),
          ...(recoveryCodes === null ? {} : { recovery_codes: recoveryCodes }),
        });
      },
    );

    app.post(
      '/auth/mfa/webauthn/auth-options',
      {
        config: { public: true, bodyMayBeEmpty: true },
        schema: {
          operationId: 'auth.startPasskey',
          summary: 'Start signing in with a passkey',
          description:
            'With mfa_token: as the second factor, completed at POST /auth/mfa/challenge. Without: by passkey alone, completed at POST /auth/login/passkey.',
          tags: ['Sign-in'],
          body: ref(RequestAssertion),
          response: { 200: ref(AssertionOptions), ...postProblems() },
        },
      },
      async (request) => passkeySignIns.options(request.body.mfa_token, browserClientOf(request, cookies)),
    );

    app.post(
      '/auth/login/passkey',
      {
        config: { public: true },
        schema: {
          operationId: 'auth.signInByPasskey',
          summary: 'Sign in by passkey',
          description: 'Needs neither address nor password, and counts as a second factor.',
          tags: ['Sign-in'],
          body: ref(SignInByPasskey),
          response: { 200: SignInResponse, ...postProblems() },
        },
      },
      async (request, reply) => {
        const client = browserClientOf(request, cookies);
        const { userId, signIn } = await passkeySignIns.signIn(request.body.response, client);
        reply.rememberDevice(signIn);
        return presentSignIn(signIn, await accounts.get(userId));
      },
    );
    done();
  };
