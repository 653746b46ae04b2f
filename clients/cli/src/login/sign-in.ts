import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { CLIENT_ID, readAuthorizationServer, requestTokens } from '../profiles/oauth.ts';
import type { SignIn } from '../profiles/profile-file.ts';
import { receiveCode } from './receive-code.ts';

export interface SignInOptions {
  baseUrl: string;
  /** Whether to open a browser on this computer. */
  opensBrowser: boolean;
  /** Shows the person where to go. */
  show(url: string): void;
}

/** Signs a person in with their browser: a code, PKCE with S256, and a redirect to this computer. */
export async function signIn({ baseUrl, opensBrowser, show }: SignInOptions): Promise<SignIn> {
  const { issuer, authorizationEndpoint } = await readAuthorizationServer(baseUrl);
  const state = randomBytes(24).toString('base64url');
  const verifier = randomBytes(48).toString('base64url');
  const receiver = await receiveCode({ state, issuer });
  try {
    const url = new URL(authorizationEndpoint);
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id: CLIENT_ID,
      redirect_uri: receiver.redirectUri,
      resource: `${issuer}/api/v1`,
      state,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    }).toString();
    show(url.href);
    if (opensBrowser) openBrowser(url.href);
    return await requestTokens(baseUrl, {
      grant_type: 'authorization_code',
      code: await receiver.code,
      redirect_uri: receiver.redirectUri,
      code_verifier: verifier,
    });
  } finally {
    receiver.close();
  }
}

const OPENERS: Partial<Record<NodeJS.Platform, [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
};

/** Without a browser here, the person opens the address that was shown. */
function openBrowser(url: string): void {
  const [command, ...options] = OPENERS[process.platform] ?? ['xdg-open'];
  const child = spawn(command, [...options, url], { stdio: 'ignore', detached: true });
  child.on('error', () => undefined);
  child.unref();
}
