import { expect, test } from '@jest/globals';
import { MEMBER_ROLES } from '../../domain/identity/roles.ts';
import { eventually } from '../support/eventually.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

const pathOf = (link: string): string => link.replace(/[?#].*/, '');

async function arrange(role: (typeof MEMBER_ROLES)[number]) {
  const organization = await createOrganization(app.worker);
  const { token } = organization;
  const make = async (path: string, body: object): Promise<string> => {
    const response = await app.call(path, { method: 'POST', token, body });
    expect([path, response.statusCode]).toEqual([path, 201]);
    return response.json<{ id: string }>().id;
  };
  const to = [{ email: 'ada@people.example' }];
  const name = organization.organizationId.slice(4);
  // Each is there twice: the second one is deleted afterwards.
  const ids: string[][] = [[], []];
  for (const [index, made] of ids.entries()) {
    const inboxId = (await createInbox(app.worker, organization)).id;
    await make(`/inboxes/${inboxId}/messages`, { to, subject: 'Sent' });
    await make(`/inboxes/${inboxId}/drafts`, { to, subject: 'A draft' });
    const endpoint = { url: `https://hooks-${index}.example.com/`, events: ['message.sent'] };
    made.push(
      `/drafts/${await make(`/inboxes/${inboxId}/drafts`, { to, subject: 'A draft' })}`,
      `/inboxes/${inboxId}`,
      `/webhooks/endpoints/${await make('/webhooks/endpoints', endpoint)}`,
      `/domains/${await make('/domains', { domain_name: `${index}-${name}.example` })}`,
    );
    await make('/suppressions', { email: `bob-${index}@people.example` });
  }
  for (const path of ids[1] ?? [])
    expect((await app.call(path, { method: 'DELETE', token })).statusCode).toBeLessThan(300);
  await callWithRevokedKey(token);
  const userId = await createTestUser(app.worker, { organizationId: organization.organizationId, role });
  const browser = createPageClient(app);
  browser.cookies.set('session', (await createTestSession(app.worker, userId)).token);
  return browser;
}

/** Its call stays listed. */
async function callWithRevokedKey(token: string): Promise<void> {
  const body = { name: 'Revoked', permissions: ['inboxes:read'] };
  const { id, token: revoked } = (await app.call('/api-keys', { method: 'POST', token, body })).json();
  await app.call('/inboxes', { token: revoked });
  await app.call(`/api-keys/${id}`, { method: 'DELETE', token });
  await eventually(async () => {
    const listed = await app.call(`/requests?credential_id=${id}`, { token });
    expect(listed.json<{ data: unknown[] }>().data).toHaveLength(1);
  });
}

test.each(MEMBER_ROLES)('every link that a member with the role %s sees leads to a page', async (role) => {
  const browser = await arrange(role);
  const found = new Map([['/overview', '/overview']]);
  const refused: string[] = [];
  // Links of the pages that are found meanwhile are followed, too.
  for (const path of found.values()) {
    const { statusCode, headers, body } = await browser.open(path);
    if (statusCode !== 200) refused.push(`${path}: ${statusCode}`);
    if (!String(headers['content-type']).startsWith('text/html')) continue;
    for (const [, link = ''] of body.matchAll(/<a [^>]*href="(\/[^"]*)"/g)) {
      const target = link.replaceAll('&amp;', '&');
      if (!found.has(pathOf(target)) && !/^\/(?:docs|api|assets)\b/.test(target))
        found.set(pathOf(target), target.replace(/#.*/, ''));
    }
  }
  expect(refused).toEqual([]);
  expect(found.size).toBeGreaterThan(20);
});
