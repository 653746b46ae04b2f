import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { BrowserSignIn } from '../../api/people/browser-sign-in.ts';
import { browserClientOf } from '../../api/people/client-of.ts';
import { RegistrationResponse } from '../../api/people/passkeys.schemas.ts';
import type { Cookies } from '../../api/plugins/cookies.ts';
import { strictObject, text } from '../../api/schemas.ts';
import type { PasskeyEnrollmentService } from '../../domain/people/passkeys/passkey-enrollment.service.ts';
import type { PasskeySignInService } from '../../domain/people/passkeys/passkey-sign-in.service.ts';
import type { RegistrationResponseJSON } from '../../domain/people/passkeys/webauthn-ceremonies.ts';
import { rejectionOf } from '../shell/pages.ts';
import { type AccountPageDependencies, showAccount, showRecoveryCodes } from './account-page.ts';
import { PasskeyField, readPasskeyResponse } from './passkey-response.ts';

export interface PasskeyPageDependencies extends AccountPageDependencies {
  cookies: Cookies;
  browserSignIn: BrowserSignIn;
  passkeyEnrollments: PasskeyEnrollmentService;
  passkeySignIns: PasskeySignInService;
}

/** Registering a passkey, and the options that the script of the pages asks for. */
export const passkeyPages =
  (dependencies: PasskeyPageDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { pages, cookies, browserSignIn, passkeyEnrollments, passkeySignIns } = dependencies;

    app.post(
      '/login/passkey/options',
      { config: { public: true }, schema: { operationId: 'pages.startPasskeyLogin', body: Type.Object({}) } },
      async (request) => passkeySignIns.options(undefined, browserClientOf(request, cookies)),
    );

    app.post(
      '/login/mfa/passkey/options',
      { config: { public: true }, schema: { operationId: 'pages.startPasskeyMfa', body: Type.Object({}) } },
      async (request) =>
        passkeySignIns.options(
          browserSignIn.readPendingMfa(request)?.mfaToken ?? '',
          browserClientOf(request, cookies),
        ),
    );

    app.post(
      '/account/passkeys/options',
      { config: { person: 'any' }, schema: { operationId: 'pages.startPasskey', body: Type.Object({}) } },
      async ({ person }) => passkeyEnrollments.options(person),
    );

    app.post(
      '/account/passkeys',
      {
        config: { person: 'any' },
        schema: {
          operationId: 'pages.registerPasskey',
          body: strictObject({ response: PasskeyField, name: Type.Optional(text(200)) }),
        },
      },
      async (request, reply) => {
        const registering = register(request.body);
        const problem = await rejectionOf(registering);
        if (problem) return showAccount(dependencies, request, reply, problem);
        const { recoveryCodes } = await registering;
        if (recoveryCodes === null) return pages.seeOther(reply, '/account', 'passkey-added');
        return showRecoveryCodes(pages, request, reply, recoveryCodes);

        async function register({ response, name }: { response: string; name?: string }) {
          const parsed = readPasskeyResponse(RegistrationResponse, response) as RegistrationResponseJSON;
          const trimmed = name?.trim();
          return passkeyEnrollments.register(request.person, {
            response: parsed,
            ...(trimmed ? { name: trimmed } : {}),
          });
        }
      },
    );
    done();
  };
