import { expect, test } from '@jest/globals';
import { createAccountQuickly } from '../support/accounts.ts';
import { consent, createOauthClient, registerClient, signedInBrowser } from '../support/oauth-client.ts';
import { useTestApp } from '../support/resources.ts';

const config = { TRUST_PROXY: '127.0.0.1' };
const first = useTestApp({ config });
const second = useTestApp({ config });

test('processes share all state: each continues what another began', async () => {
  const account = await createAccountQuickly(first);
  const client = await registerClient(first);
  const browser = await signedInBrowser(first, account.email);
  // The request is made at one process and decided at another, whose cookies and forms it accepts.
  const elsewhere = await signedInBrowser(second, account.email);
  for (const [name, value] of browser.cookies) elsewhere.cookies.set(name, value);
  const answered = await consent(elsewhere, client.authorizePath());
  const code = answered.searchParams.get('code') ?? '';
  const exchanged = await client.exchange(code);
  expect(exchanged.statusCode).toBe(200);

  const there = createOauthClient(second, client.clientId);
  const { refresh_token } = exchanged.json();
  const [here, retried] = await Promise.all([client.refresh(refresh_token), there.refresh(refresh_token)]);
  expect(retried.json().refresh_token).toBe(here.json().refresh_token);
  const next = await there.refresh(here.json().refresh_token);
  expect(next.statusCode).toBe(200);
  expect((await client.refresh(refresh_token)).json().error).toBe('invalid_grant');
  expect((await there.refresh(next.json().refresh_token)).json().error).toBe('invalid_grant');
});
