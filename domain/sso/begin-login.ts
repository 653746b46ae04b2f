import type { OidcSecrets } from '../../platform/oidc-client.ts';
import { type CompletionOptions, recordRefusals } from './complete-login.ts';
import type { OidcLogin } from './oidc-login.ts';
import type { SamlClient } from './saml/saml-client.ts';
import { ssoFailed, ssoTestFailed } from './sso-checks.ts';
import type { SsoSettings } from './sso-settings.ts';
import { createSsoToken, createSsoTransaction } from './sso-transactions.ts';

/** A login that has begun. */
export interface SsoStart {
  /** URL at the identity provider. */
  redirectUrl: string;
  /** For a cookie: only this browser can finish the login. */
  browserToken: string;
}

export interface LoginRequest {
  purpose: 'login' | 'test' | 'prove';
  redirectTo: string;
  isFresh: boolean;
  userId: string | null;
  /** Address that the person entered. */
  loginHint?: string | undefined;
  /** With the purpose `prove`. */
  linkToken?: string;
}

/** What a transaction keeps until the identity provider answers. */
export interface LoginSecrets extends OidcSecrets {
  /** Id of the SAML request. */
  requestId: string;
  /** Token of the identity that a login through a replaced configuration is to be linked with. */
  linkToken?: string;
}

export interface BeginOptions extends CompletionOptions {
  oidc: OidcLogin;
  saml: SamlClient;
}

/** Begins a login at the identity provider. @throws AppError `sso_failed`; for a test `unprocessable`. */
export async function beginLogin(
  options: BeginOptions,
  settings: SsoSettings,
  { loginHint, linkToken, ...request }: LoginRequest,
  browserToken: string,
): Promise<SsoStart> {
  const { database, secretBox, oidc, saml } = options;
  const state = createSsoToken();
  const secrets: LoginSecrets = {
    state,
    nonce: createSsoToken(),
    codeVerifier: createSsoToken(),
    requestId: `_${createSsoToken()}`,
    ...(linkToken === undefined ? {} : { linkToken }),
  };
  const { isFresh } = request;
  const redirectUrl = await recordRefusals(
    options,
    settings,
    request.purpose,
    (checks) =>
      settings.type === 'oidc'
        ? oidc.authorizationUrl(settings, { ...secrets, isFresh, loginHint }, checks)
        : saml.authorizationUrl(
            settings.idpMetadataXml,
            {
              provider: saml.serviceProvider(settings.serviceProviderId),
              requestId: secrets.requestId,
              relayState: state,
              isFresh,
            },
            checks,
          ),
    request.purpose === 'test' ? ssoTestFailed : ssoFailed,
  );
  await database.peopleTransaction(({ db }) =>
    createSsoTransaction(db, secretBox, state, { settings, ...request, browserToken, secrets }),
  );
  return { redirectUrl, browserToken };
}
