import { CliError, EXIT } from './cli-error.ts';
import type { Credential } from './profiles/credential.ts';

/**
 * A `fetch` for one service: it adds the credential, renews it once when it is refused, goes to no other address and follows
 * no redirect, to which the credential would go.
 *
 * @param environmentId value of `x-env-id`.
 */
export function createServiceFetch(
  credential: Credential,
  { environmentId, userAgent }: { environmentId?: string | undefined; userAgent: string },
): typeof fetch {
  const prefix = `${credential.baseUrl}/`;

  async function send(url: string, init: RequestInit | undefined, token: string): Promise<Response> {
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${token}`);
    headers.set('user-agent', userAgent);
    if (environmentId !== undefined) headers.set('x-env-id', environmentId);
    const response = await fetch(url, { ...init, headers, redirect: 'manual' });
    if (response.status < 300 || response.status >= 400 || response.status === 304) return response;
    await response.body?.cancel();
    throw new CliError(
      `${credential.baseUrl} sent this request on to ${response.headers.get('location') ?? 'another address'}.`,
      {
        exitCode: EXIT.api,
        code: 'redirected',
        fix: 'Log in with the address of the service itself. A credential follows no redirect.',
      },
    );
  }

  return async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    if (!url.startsWith(prefix)) throw new Error(`A credential of ${prefix} does not go to ${url}`);
    const token = await credential.token();
    const response = await send(url, init, token);
    // A body that is a stream is spent.
    if (response.status !== 401 || init?.body instanceof ReadableStream) return response;
    const renewed = await credential.renew(token);
    if (renewed === undefined) return response;
    await response.body?.cancel();
    return send(url, init, renewed);
  };
}
