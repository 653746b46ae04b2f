import {
  formatSeconds,
  type OidcClient,
  OidcFailure,
  type OidcSecrets,
  type OidcSettings,
  readSeconds,
} from '../../platform/oidc-client.ts';
import type { StatedIdentity } from './check-identity.ts';
import type { SsoChecks } from './sso-checks.ts';
import type { SsoSettings } from './sso-settings.ts';

export type OidcLogin = ReturnType<typeof createOidcLogin>;

/** Logins by OpenID Connect, with their checks. Each function throws SsoRefusal. */
export function createOidcLogin(oidc: OidcClient, redirectUri: string) {
  function toClient(settings: SsoSettings, checks: SsoChecks): OidcSettings {
    const { id, issuer, clientId, clientSecret, keysReadAt } = settings;
    if (issuer === null || clientId === null || clientSecret === null)
      return checks.fail('provider', 'incomplete settings', 'issuer, client_id and client_secret');
    return { id, issuer, clientId, clientSecret, redirectUri, keysReadAt };
  }

  return {
    /** Reads metadata of the identity provider. */
    readProvider: (settings: SsoSettings, checks: SsoChecks): Promise<void> =>
      recordFailure(checks, () => oidc.readProvider(toClient(settings, checks))),

    /** @param loginHint address that the person entered. */
    authorizationUrl: (
      settings: SsoSettings,
      { isFresh, loginHint, ...secrets }: OidcSecrets & { isFresh: boolean; loginHint?: string | undefined },
      checks: SsoChecks,
    ): Promise<string> =>
      recordFailure(checks, () =>
        oidc.authorizationUrl(toClient(settings, checks), secrets, {
          ...(loginHint === undefined ? {} : { login_hint: loginHint }),
          ...(isFresh ? { max_age: '0', prompt: 'login' } : {}),
        }),
      ),

    /**
     * Exchanges the code and checks the ID token.
     *
     * @param answer.renewKeys returns the settings with which metadata and keys are read again if the ID token is signed with an
     * unknown key; undefined if they were just read.
     */
    async readAnswer(
      settings: SsoSettings,
      answer: {
        parameters: URLSearchParams;
        secrets: OidcSecrets;
        renewKeys(): Promise<SsoSettings | undefined>;
      },
      checks: SsoChecks,
    ): Promise<StatedIdentity> {
      const { claims, signature } = await recordFailure(checks, () =>
        oidc.readAnswer(toClient(settings, checks), {
          ...answer,
          renewKeys: async () => {
            const renewed = await answer.renewKeys();
            return renewed && toClient(renewed, checks);
          },
        }),
      );
      checks.pass('response', 'code', 'code');
      checks.pass('issuer', claims.iss, claims.iss);
      checks.pass('audience', claims.aud, settings.clientId);
      checks.pass('nonce');
      checks.pass('time', `expires ${formatSeconds(claims.exp)}`, 'in the future');
      checks.pass('signature', signature);
      const { iss: issuer, sub: subject, email, email_verified: emailVerified, name } = claims;
      return { issuer, subject, email, emailVerified, name, authenticatedAt: readSeconds(claims.auth_time) };
    },
  };
}

async function recordFailure<T>(checks: SsoChecks, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof OidcFailure ? checks.fail(error.check, error.seen, error.expected) : error;
  }
}
