import type { Context } from './context.ts';
import { type Credential, findCredential } from './profiles/credential.ts';
import { AgentEmail } from './sdk.ts';
import { createServiceFetch } from './service-fetch.ts';
import { VERSION } from './version.ts';

export interface Session {
  client: AgentEmail;
  credential: Credential;
  /** Goes to the service alone, with the credential. */
  fetch: typeof fetch;
}

/** @throws CliError without a credential. */
export async function openSession({ env, globals }: Context): Promise<Session> {
  const credential = await findCredential(env, globals);
  return sessionOf(credential, globals.env);
}

export async function sessionOf(credential: Credential, environmentId?: string): Promise<Session> {
  const serviceFetch = createServiceFetch(credential, {
    environmentId,
    userAgent: `agent-email-cli/${VERSION}`,
  });
  const client = new AgentEmail({
    // Each request gets the present token.
    apiKey: await credential.token(),
    baseUrl: credential.baseUrl,
    fetch: serviceFetch,
  });
  return { client, credential, fetch: serviceFetch };
}
