import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { startDnsServer } from '../support/dns-server.ts';
import { type PublishedRecord, publishRecords } from '../support/domains.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { useResource } from '../support/use-resource.ts';

const server = useResource(startDnsServer, (dns) => dns.stop());
const app = useTestApp(() => ({
  config: {
    DNS_SERVERS: server.address,
    DNS_TIMEOUT_MS: '100',
    DNS_TRIES: '2',
    INBOUND_MX_HOST: 'mx.mail.test',
  },
}));

interface Domain {
  id: string;
  domain_name: string;
  verification_status: string;
  catch_all_inbox_id: string | null;
  records: PublishedRecord[];
}

async function arrange(role: 'owner' | 'developer' | 'viewer' = 'owner') {
  const organization = await createOrganization(app.worker);
  const { organizationId, token } = organization;
  const userId =
    role === 'owner' ? organization.ownerId : await createTestUser(app.worker, { organizationId, role });
  const browser = createPageClient(app);
  browser.cookies.set('session', (await createTestSession(app.worker, userId)).token);
  const name = `d${randomUUID().slice(0, 8)}.example`;
  const add = async () =>
    (await app.call('/domains', { method: 'POST', token, body: { domain_name: name } })).json<Domain>();
  const get = async (id: string) => (await app.call(`/domains/${id}`, { token })).json<Domain>();
  return { organization, browser, name, add, get };
}

describe('the screen of domains', () => {
  test('says what to do while there is none, adds one, and shows each record to publish', async () => {
    const { browser, name, organization } = await arrange();
    expect((await browser.open('/domains')).body).toContain('No domains yet');
    const added = await browser.submit('/domains', { domain_name: ` ${name.toUpperCase()} ` });
    expect(added.body).toContain('The domain is added.');
    expect(browser.path).toMatch(/^\/domains\/dom_/);
    const [domain] = (await app.call('/domains', { token: organization.token })).json<{ data: Domain[] }>()
      .data;
    for (const record of domain?.records ?? []) {
      expect(added.body).toContain(record.name);
      expect(added.body).toContain(record.value);
    }
    expect(added.body).toContain('not checked yet');
    expect((await browser.open('/domains')).body).toContain(name);
  });

  test.each(['', 'https://shop.example/', '192.0.2.1', 'com'])(
    'keeps %j in its field, with what is wrong beside it',
    async (input) => {
      const { browser } = await arrange();
      await browser.open('/domains');
      const refused = await browser.submit('/domains', { domain_name: input });
      expect(refused.statusCode).toBe(400);
      expect(refused.body).toContain('class="field-error"');
      if (input) expect(refused.body).toContain(`value="${input}"`);
    },
  );

  test('looks the records up now: a missing one and a wrong one are told apart, with what was found', async () => {
    const { browser, add, get } = await arrange();
    const domain = await add();
    const spf = domain.records.find(({ purpose }) => purpose === 'spf');
    server.set(spf?.name ?? '', 'TXT', ['v=spf1 include:elsewhere.example <b>-all</b>']);
    await browser.open(`/domains/${domain.id}`);
    const checked = await browser.submit(`/domains/${domain.id}/verify`);
    expect(checked.body).toContain('3 of 3 required records are not as needed');
    expect(checked.body).toContain('Ownership (missing), SPF (wrong), DKIM (missing)');
    expect(checked.body).toContain('v=spf1 include:elsewhere.example &lt;b&gt;-all&lt;/b&gt;');
    publishRecords(server, domain.records);
    const verified = await browser.submit(`/domains/${domain.id}/verify`);
    expect(verified.body).toContain('The domain is verified.');
    expect(verified.body).toContain('Every required record is published.');
    expect((await get(domain.id)).verification_status).toBe('verified');
    for (const entry of ['Verified', 'Added', 'DNS check']) expect(verified.body).toContain(entry);
  });

  test('loads the records again while the service waits for them, until it does not', async () => {
    const { browser, add } = await arrange();
    const domain = await add();
    const page = await browser.open(`/domains/${domain.id}`);
    const [, src = ''] = /<poll-region src="([^"]+)"/.exec(page.body) ?? [];
    const waiting = await browser.open(src);
    expect(waiting.body).not.toMatch(/<html|data-settled/);
    expect(waiting.body).toContain(domain.records[0]?.name);
    publishRecords(server, domain.records);
    await browser.open(`/domains/${domain.id}`);
    await browser.submit(`/domains/${domain.id}/verify`);
    expect((await browser.open(src)).body).toContain('data-settled');
  });

  test('downloads the zone file', async () => {
    const { browser, add, name } = await arrange();
    const { id } = await add();
    const file = await browser.open(`/domains/${id}/zone-file`);
    expect(file.headers['content-disposition']).toBe(`attachment; filename="${name}.zone"`);
    expect(file.headers['content-type']).toMatch(/^text\/plain/);
    expect(file.body).toContain(`_agent-email-verification.${name}. 3600 IN TXT`);
  });

  test('makes a new DKIM key of a verified domain, which waits for its record', async () => {
    const { browser, add, get } = await arrange();
    const domain = await add();
    publishRecords(server, domain.records);
    await browser.open(`/domains/${domain.id}`);
    const verified = await browser.submit(`/domains/${domain.id}/verify`);
    expect(verified.body).toContain('Make a new DKIM key?');
    const made = await browser.submit(`/domains/${domain.id}/rotate-dkim`);
    expect(made.body).toContain('The new key is made.');
    expect(made.body).toContain('DKIM, the new key');
    expect(made.body).not.toContain('Make a new DKIM key?');
    expect((await get(domain.id)).records.filter(({ purpose }) => purpose === 'dkim')).toHaveLength(2);
  });

  test('chooses the catch-all inbox by its address, and none', async () => {
    const { browser, add, get, organization } = await arrange();
    const inbox = await createInbox(app.worker, organization);
    const domain = await add();
    publishRecords(server, domain.records);
    await browser.open(`/domains/${domain.id}`);
    await browser.submit(`/domains/${domain.id}/verify`);
    const path = `/domains/${domain.id}/catch-all`;
    const wrong = await browser.submit(path, { inbox: 'nothing@elsewhere.example' });
    expect(wrong.statusCode).toBe(400);
    expect(wrong.body).toContain('Inbox is not an inbox here.');
    expect(wrong.body).toContain('value="nothing@elsewhere.example"');
    const chosen = await browser.submit(path, { inbox: inbox.email });
    expect(chosen.body).toContain(`value="${inbox.email}"`);
    expect((await get(domain.id)).catch_all_inbox_id).toBe(inbox.id);
    await browser.submit(path, { inbox: '' });
    expect((await get(domain.id)).catch_all_inbox_id).toBeNull();
  });

  test('deletes a domain; one in use stays, with the reason', async () => {
    const { browser, add, organization } = await arrange();
    const domain = await add();
    publishRecords(server, domain.records);
    await browser.open(`/domains/${domain.id}`);
    await browser.submit(`/domains/${domain.id}/verify`);
    const { token } = organization;
    const made = await app.call('/inboxes', {
      method: 'POST',
      token,
      body: { username: 'ada', domain: domain.domain_name },
    });
    expect(made.statusCode).toBe(201);
    const kept = await browser.submit(`/domains/${domain.id}/delete`);
    expect(kept.statusCode).toBe(409);
    expect(kept.body).toContain('The domain has 1 inbox');
    await app.call(`/inboxes/${made.json().id}`, { method: 'DELETE', token });
    const gone = await browser.submit(`/domains/${domain.id}/delete`);
    expect(gone.body).toContain('The domain is deleted.');
    expect(browser.path).toMatch(/^\/domains\?/);
  });

  test('a viewer sees the records and no buttons; another organization sees nothing', async () => {
    const viewer = await arrange('viewer');
    const domain = await viewer.add();
    const page = await viewer.browser.open(`/domains/${domain.id}`);
    expect(page.statusCode).toBe(200);
    expect(page.body).not.toContain(`/domains/${domain.id}/delete`);
    expect(page.body).not.toContain('>History<');
    const other = await arrange();
    for (const path of ['', '/records', '/zone-file'])
      expect((await other.browser.open(`/domains/${domain.id}${path}`)).statusCode).toBe(404);
    await other.browser.open('/domains');
    const forged = await other.browser.post(`/domains/${domain.id}/delete`, {});
    expect(forged.statusCode).toBe(403);
  });
});
