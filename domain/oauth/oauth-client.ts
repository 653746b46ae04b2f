import type { OauthSecrets } from './oauth-transactions.ts';

/** Who signed in at a provider. */
export interface OauthIdentity {
  issuer: string;
  subject: string;
  email: string | null;
  /** The provider is known to verify addresses, and verified this one. */
  isEmailVerified: boolean;
  name: string | null;
}

/** One provider's protocol. */
export interface OauthClient {
  /** Where the browser goes. @throws Error if the provider cannot be reached. */
  authorizationUrl(secrets: OauthSecrets): Promise<string>;
  /**
   * Exchanges the code and checks the answer.
   *
   * @param parameters of the callback, as the provider sent them.
   * @throws Error if anything is wrong with the answer, or the provider cannot be reached.
   */
  readAnswer(parameters: URLSearchParams, secrets: OauthSecrets): Promise<OauthIdentity>;
}
