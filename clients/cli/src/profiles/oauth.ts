import { credentialError } from '../cli-error.ts';
import { isLoopback, parseUrl } from './address.ts';
import type { SignIn } from './profile-file.ts';

export const CLIENT_ID = 'agent-email-cli';
const TIMEOUT_MS = 15_000;

export interface AuthorizationServer {
  issuer: string;
  /** The page to which the person's browser goes. */
  authorizationEndpoint: string;
}

/** What the service says about its sign-in (RFC 8414). */
export async function readAuthorizationServer(baseUrl: string): Promise<AuthorizationServer> {
  const response = await fetch(`${baseUrl}/.well-known/oauth-authorization-server`, {
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const { issuer, authorization_endpoint: endpoint } = (await response.json().catch(() => ({}))) as {
    issuer?: unknown;
    authorization_endpoint?: unknown;
  };
  const url = parseUrl(String(endpoint));
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url));
  if (!response.ok || typeof issuer !== 'string' || !url || !isSafe)
    throw credentialError(
      `${baseUrl} does not offer a sign-in for programs.`,
      'Check the address, or log in with a key: agent-email login --with-key.',
      'no_sign_in',
    );
  return { issuer, authorizationEndpoint: url.href };
}

/** Exchanges a code, or a refresh token. Tokens go to the address of the profile alone. */
export async function requestTokens(baseUrl: string, parameters: Record<string, string>): Promise<SignIn> {
  const response = await post(`${baseUrl}/oauth/token`, parameters);
  const answer = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  const { access_token, refresh_token, expires_in } = answer;
  if (response.status >= 500 || response.status === 429)
    throw new Error(`The service answered ${response.status} to the exchange of a token.`);
  if (!response.ok || typeof access_token !== 'string' || typeof refresh_token !== 'string')
    throw credentialError(
      `The sign-in has ended${typeof answer.error_description === 'string' ? `: ${answer.error_description}` : ''}.`,
      'Sign in again: agent-email login.',
      'sign_in_ended',
    );
  const seconds = typeof expires_in === 'number' ? expires_in : 0;
  return { access_token, refresh_token, expires_at: new Date(Date.now() + seconds * 1_000).toISOString() };
}

/** Ends a sign-in at the service (RFC 7009). */
export async function revoke(baseUrl: string, token: string): Promise<boolean> {
  return (await post(`${baseUrl}/oauth/revoke`, { token })).ok;
}

const post = (url: string, parameters: Record<string, string>) =>
  fetch(url, {
    method: 'POST',
    redirect: 'error',
    body: new URLSearchParams({ client_id: CLIENT_ID, ...parameters }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
