import { expect, test } from '@jest/globals';
import { createOrganization } from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();
const behindTls = useTestApp({ config: { PUBLIC_URL: 'https://mail.example' } });

test('responses with content are not stored, sniffed or passed on', async () => {
  const { token } = await createOrganization(app.worker);
  for (const path of ['/inboxes', '/org', '/inboxes/inb_missing']) {
    const { headers } = await app.call(path, { token });
    expect(headers).toMatchObject({
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
    });
  }
});

test('HSTS is sent only if clients reach the service through TLS', async () => {
  const url = '/health/live';
  expect((await behindTls.app.inject({ url })).headers['strict-transport-security']).toMatch(
    /^max-age=\d{8}/,
  );
  expect((await app.app.inject({ url })).headers['strict-transport-security']).toBeUndefined();
});
