import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { Static } from 'typebox';
import type { AccountService } from '../../domain/people/account.service.ts';
import type { MfaService } from '../../domain/people/mfa.service.ts';
import type { MfaChallengeService, MfaProof } from '../../domain/people/mfa-challenge.service.ts';
import { invalid } from '../../platform/errors.ts';
import type { Cookies } from '../plugins/cookies.ts';
import { changeProblems, id, NoContent, postProblems, problems, ref, strictObject } from '../schemas.ts';
import { presentSignIn, SignInResponse } from './auth.schemas.ts';
import { browserClientOf } from './client-of.ts';
import {
  MfaStatus,
  presentEnrollment,
  RecoveryCodes,
  SetUpTotp,
  TotpSetup,
  TotpVerified,
  VerifyTotp,
} from './mfa.schemas.ts';
import { CompleteMfa } from './passkeys.schemas.ts';

export interface MfaRouteDependencies {
  mfa: MfaService;
  mfaChallenges: MfaChallengeService;
  accounts: AccountService;
  cookies: Cookies;
}

export const mfaRoutes =
  ({ mfa, mfaChallenges, accounts, cookies }: MfaRouteDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/auth/mfa/challenge',
      {
        config: { public: true },
        schema: {
          operationId: 'auth.completeMfa',
          summary: 'Complete a sign-in with the second factor',
          description: 'The token is void after ten minutes, five failures, or a change of the password.',
          tags: ['Sign-in'],
          body: ref(CompleteMfa),
          response: { 200: SignInResponse, ...postProblems() },
        },
      },
      async (request, reply) => {
        const input = { mfaToken: request.body.mfa_token, proof: readProof(request.body) };
        const client = browserClientOf(request, cookies);
        const { userId, signIn } = await mfaChallenges.complete(input, client);
        reply.rememberDevice(signIn);
        return presentSignIn(signIn, await accounts.get(userId));
      },
    );

    app.get(
      '/auth/mfa/status',
      {
        config: { person: 'any' },
        schema: {
          operationId: 'mfa.getStatus',
          summary: 'Get your second factors',
          tags: ['MFA'],
          response: { 200: ref(MfaStatus), ...problems() },
        },
      },
      async ({ person }) => {
        const { enrollments, recoveryCodesLeft } = await mfa.status(person);
        return {
          object: 'mfa_status' as const,
          enabled: enrollments.length > 0,
          enrollments: enrollments.map(presentEnrollment),
          recovery_codes_left: recoveryCodesLeft,
        };
      },
    );

    app.post(
      '/auth/mfa/totp/setup',
      {
        config: { person: 'any', bodyMayBeEmpty: true },
        schema: {
          operationId: 'mfa.setUpTotp',
          summary: 'Begin to enroll an authenticator app',
          description:
            'Requires a sign-in within the last ten minutes. The app is no factor before its first code.',
          tags: ['MFA'],
          body: ref(SetUpTotp),
          response: { 200: ref(TotpSetup), ...postProblems() },
        },
      },
      async ({ person, body }) => {
        const { enrollmentId, secret, uri, qrSvg } = await mfa.setUpTotp(person, body.name);
        return {
          object: 'totp_setup' as const,
          enrollment_id: enrollmentId,
          secret,
          otpauth_uri: uri,
          qr_svg: qrSvg,
        };
      },
    );

    app.post(
      '/auth/mfa/totp/verify',
      {
        config: { person: 'any' },
        schema: {
          operationId: 'mfa.verifyTotp',
          summary: 'Complete the enrollment of an authenticator app with a first code',
          tags: ['MFA'],
          body: ref(VerifyTotp),
          response: { 200: ref(TotpVerified), ...postProblems() },
        },
      },
      async ({ person, body }) => {
        const input = { enrollmentId: body.enrollment_id, code: body.code };
        const { enrollment, recoveryCodes } = await mfa.confirmTotp(person, input);
        return {
          object: 'enrolled_factor' as const,
          enrollment: presentEnrollment(enrollment),
          ...(recoveryCodes === null ? {} : { recovery_codes: recoveryCodes }),
        };
      },
    );

    app.delete(
      '/auth/mfa/:enrollmentId',
      {
        config: { person: 'full' },
        schema: {
          operationId: 'mfa.remove',
          summary: 'Remove a second factor',
          description:
            'Requires a sign-in within the last ten minutes. With the last factor the recovery codes go, too.',
          tags: ['MFA'],
          params: strictObject({ enrollmentId: id('Id of the enrollment (mfa_…).') }),
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async ({ person, params }, reply) => {
        await mfa.remove(person, params.enrollmentId);
        return reply.code(204).send(null);
      },
    );

    app.post(
      '/auth/mfa/recovery-codes/regenerate',
      {
        config: { person: 'full', bodyMayBeEmpty: true },
        schema: {
          operationId: 'mfa.regenerateRecoveryCodes',
          summary: 'Replace your recovery codes',
          description: 'Requires a sign-in within the last ten minutes.',
          tags: ['MFA'],
          response: { 200: ref(RecoveryCodes), ...postProblems() },
        },
      },
      async ({ person }) => ({
        object: 'recovery_codes' as const,
        recovery_codes: await mfa.regenerateRecoveryCodes(person),
      }),
    );
    done();
  };

/** @throws AppError `validation_error` if what the method needs is missing, or something else is given. */
function readProof({ method, code, response }: Static<typeof CompleteMfa>): MfaProof {
  if (method === 'webauthn' && response !== undefined && code === undefined) return { method, response };
  if (method !== 'webauthn' && code !== undefined && response === undefined) return { method, code };
  const needed = method === 'webauthn' ? 'response' : 'code';
  throw invalid(
    `/body/${needed}`,
    `must be given with the method ${method}, and nothing else`,
    `Send mfa_token, method and ${needed}.`,
  );
}
