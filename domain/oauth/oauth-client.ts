import type { EmailTrust, OidcProvider } from '../../platform/oauth-providers.ts';
import type { OidcClient } from '../../platform/oidc-client.ts';
import type { OauthSecrets } from './oauth-transactions.ts';

/** Who signed in at a provider. */
export interface OauthIdentity {
  issuer: string;
  subject: string;
  email: string | null;
  /** Whether the provider is known to verify addresses, and has verified this one. */
  isEmailVerified: boolean;
  name: string | null;
}

/** The protocol of one provider. */
export interface OauthClient {
  /** The URL to which the browser is redirected. @throws Error if the provider cannot be reached. */
  authorizationUrl(secrets: OauthSecrets): Promise<string>;
  /**
   * Exchanges the code and checks the answer.
   *
   * @param parameters of the callback, as the provider sent them.
   * @throws Error if anything is wrong with the answer, or the provider cannot be reached.
   */
  readAnswer(parameters: URLSearchParams, secrets: OauthSecrets): Promise<OauthIdentity>;
}

export function createOpenIdClient(
  { emailTrust, ...provider }: OidcProvider,
  { oidc, redirectUri }: { oidc: OidcClient; redirectUri: string },
): OauthClient {
  const settings = { ...provider, redirectUri, keysReadAt: null };
  return {
    authorizationUrl: (secrets) => oidc.authorizationUrl(settings, secrets),

    async readAnswer(parameters, secrets) {
      const { claims } = await oidc.readAnswer(settings, { parameters, secrets });
      const email = typeof claims.email === 'string' ? claims.email.toLowerCase() : null;
      return {
        issuer: claims.iss,
        subject: claims.sub,
        email,
        isEmailVerified: email !== null && isTrusted(emailTrust, email, claims),
        name: typeof claims.name === 'string' ? claims.name : null,
      };
    },
  };
}

function isTrusted(trust: EmailTrust, email: string, claims: Record<string, unknown>): boolean {
  if (trust === 'never' || claims.email_verified !== true) return false;
  // Google manages Gmail's addresses, and those of a Workspace, whose accounts have the claim `hd`.
  return trust === 'verified' || /@(?:gmail|googlemail)\.com$/.test(email) || typeof claims.hd === 'string';
}
