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

    pages.form(app, '/account/passkeys', {
      config: { person: 'any' },
      schema: {
        operationId: 'pages.registerPasskey',
        body: strictObject({ response: PasskeyField, name: Type.Optional(text(200)) }),
      },
      work: async ({ person, body }) => {
        const response = readPasskeyResponse(RegistrationResponse, body.response) as RegistrationResponseJSON;
        const name = body.name?.trim();
        return passkeyEnrollments.register(person, { response, ...(name ? { name } : {}) });
      },
      show: (request, reply, problem) => showAccount(dependencies, request, reply, problem),
      done: (request, reply, { recoveryCodes }) =>
        recoveryCodes === null
          ? pages.seeOther(reply, '/account', 'passkey-added')
          : showRecoveryCodes(pages, request, reply, recoveryCodes),
    });
    done();
  };
