import { expect, test } from '@jest/globals';
import { listen } from '../support/live-stream.ts';
import { createOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
const MORE_THAN_A_PAGE = 60;

/** The first rendering that a live part sends. */
async function readUpdate(path: string, session: string): Promise<string> {
  const { origin } = new URL(await listen(app));
  const ended = new AbortController();
  const response = await fetch(`${origin}${path}`, {
    headers: { cookie: `session=${session}` },
    signal: ended.signal,
  });
  expect([path, response.status]).toEqual([path, 200]);
  let text = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const [, data] = /^event: update\ndata: (.*)\n\n/m.exec(text) ?? [];
    if (data === undefined) continue;
    ended.abort();
    return JSON.parse(data);
  }
  throw new Error(`The stream ended: ${text}`);
}

test('the next page of a list is a page, also after its part was sent again', async () => {
  const { token, organizationId } = await createOrganization(app.worker);
  const body = { url: 'https://hooks.example.com/', events: ['message.sent'] };
  const { id } = (await app.call('/webhooks/endpoints', { method: 'POST', token, body })).json();
  for (let count = 0; count < MORE_THAN_A_PAGE; count += 1)
    await app.call(`/webhooks/endpoints/${id}/test`, { method: 'POST', token, body: {} });
  const userId = await createTestUser(app.worker, { organizationId, role: 'owner' });
  const session = (await createTestSession(app.worker, userId)).token;
  const browser = createPageClient(app);
  browser.cookies.set('session', session);

  const linksIn = (html: string) =>
    [...html.matchAll(/href="(\/webhooks\/[^"]*cursor=[^"]*)"/g)].map(([, link = '']) =>
      link.replaceAll('&amp;', '&'),
    );
  const pathOf = (link: string) => link.split('?')[0];
  const [next = ''] = linksIn((await browser.open(`/webhooks/${id}`)).body);
  expect(pathOf(next)).toBe(`/webhooks/${id}`);
  const [sentAgain = ''] = linksIn(await readUpdate(`/webhooks/${id}/live`, session));
  expect(pathOf(sentAgain)).toBe(`/webhooks/${id}`);
  expect((await browser.open(sentAgain)).statusCode).toBe(200);
  // The part of the second page.
  expect(await readUpdate(next.replace('?', '/live?'), session)).toContain('Deliveries');
});
