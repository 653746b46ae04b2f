import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { credentialError, timedOut } from '../cli-error.ts';

const CALLBACK_PATH = '/callback';
/** As long as the service keeps the request for authorization. */
const TIMEOUT_MS = 30 * 60 * 1_000;

export interface CodeReceiver {
  redirectUri: string;
  /** Rejects with a CliError if the person cancels, or does not decide in half an hour. */
  code: Promise<string>;
  close(): void;
}

/**
 * Listens on a free port of this computer for the browser that comes back from the service (RFC 8252 section 7.3).
 *
 * @param state of this sign-in: what comes with another one is not for it.
 * @param issuer of the service (RFC 9207).
 */
export async function receiveCode({
  state,
  issuer,
}: {
  state: string;
  issuer: string;
}): Promise<CodeReceiver> {
  let settle: { resolve(code: string): void; reject(error: Error): void } | undefined;
  const code = new Promise<string>((resolve, reject) => {
    settle = { resolve, reject };
  });
  // A refusal may come before it is waited for.
  code.catch(() => undefined);
  const server = createServer((request, response) => {
    const query = readCallback(request);
    if (query?.get('state') !== state) return answer(response, 404, 'This page is not for you.');
    const outcome = readOutcome(query, issuer);
    if (typeof outcome === 'string') {
      answer(response, 200, 'You are logged in. You can close this window.');
      return settle?.resolve(outcome);
    }
    answer(response, 200, 'Nothing was allowed. You can close this window.');
    settle?.reject(outcome);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const timer = setTimeout(
    () =>
      settle?.reject(timedOut('There was no sign-in within half an hour.', 'Run agent-email login again.')),
    TIMEOUT_MS,
  );
  return {
    redirectUri: `http://127.0.0.1:${(server.address() as AddressInfo).port}${CALLBACK_PATH}`,
    code,
    close() {
      clearTimeout(timer);
      server.close();
      server.closeIdleConnections();
    },
  };
}

function readCallback({ method, url = '' }: IncomingMessage): URLSearchParams | undefined {
  if (method !== 'GET' || !URL.canParse(url, 'http://127.0.0.1')) return undefined;
  const { pathname, searchParams } = new URL(url, 'http://127.0.0.1');
  return pathname === CALLBACK_PATH ? searchParams : undefined;
}

function readOutcome(query: URLSearchParams, issuer: string): string | Error {
  if (query.get('iss') !== issuer)
    return credentialError('The answer came from another service.', 'Run agent-email login again.');
  return (
    query.get('code') ??
    credentialError(
      query.get('error') === 'access_denied'
        ? 'You did not allow the command line.'
        : `The service refused the sign-in: ${query.get('error_description') ?? query.get('error') ?? 'no reason'}.`,
      'Run agent-email login again, or log in with a key: agent-email login --with-key.',
      'access_denied',
    )
  );
}

function answer(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'",
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    connection: 'close',
  });
  response.end(`<!doctype html><meta charset="utf-8"><title>Agent Email CLI</title><p>${text}</p>`);
}
