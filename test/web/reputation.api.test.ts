import { describe, expect, test } from '@jest/globals';
import { newId } from '../../platform/ids.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp();

async function arrange(role: 'owner' | 'viewer' = 'owner') {
  const organization = await createOrganization(app.worker);
  const { organizationId, token } = organization;
  const userId =
    role === 'owner' ? organization.ownerId : await createTestUser(app.worker, { organizationId, role });
  const browser = createPageClient(app);
  browser.cookies.set('session', (await createTestSession(app.worker, userId)).token);
  const suppress = (email: string) => app.call('/suppressions', { method: 'POST', token, body: { email } });
  const suppressed = async () =>
    (await app.call('/suppressions', { token })).json<{ data: { email: string }[] }>().data;
  return { organization, browser, suppress, suppressed };
}

describe('the score', () => {
  test.each(['24h', '7d', '30d'])(
    'is shown for %s, and says that there are too few messages',
    async (range) => {
      const { browser } = await arrange();
      const page = await browser.open(`/reputation?range=${range}`);
      expect(page.statusCode).toBe(200);
      expect(page.body).toContain('too few messages');
      expect(page.body).toContain('A score needs at least 20 sends; there were 0.');
    },
  );
});

describe('suppressed addresses', () => {
  test('are added, found by a part of the address, and lifted with a note for the audit log', async () => {
    const { browser, suppress, suppressed, organization } = await arrange();
    const path = '/reputation/suppressions';
    expect((await browser.open(path)).body).toContain('No address is suppressed');
    const added = await browser.submit(path, { email: ' Ada@People.example ' });
    expect(added.body).toContain('Nothing is sent to the address any more.');
    expect((await browser.submit(path, { email: 'ada@people.example' })).body).toContain(
      'The address was suppressed already.',
    );
    await suppress('bob@people.example');
    const found = await browser.open(`${path}?search=ADA`);
    expect(found.body).toContain('ada@people.example');
    expect(found.body).not.toContain('bob@people.example');
    expect((await browser.open(`${path}?search=zoe`)).body).toContain('Nothing found');
    expect((await browser.open(`${path}?search=&origin=complaint`)).body).toContain('Nothing found');
    await browser.open(path);
    const lifted = await browser.post(`${path}/lift`, { email: 'ada@people.example', reason: 'x' });
    expect(lifted.statusCode).toBe(403);
    await browser.open(`${path}?search=ada`);
    const done = await browser.submit(`${path}/lift?search=ada`, {
      email: 'ada@people.example',
      reason: 'She wrote to us',
    });
    expect(done.body).toContain('The suppression of ada@people.example is lifted.');
    expect(browser.path).toContain(`${path}?search=ada&`);
    expect((await suppressed()).map(({ email }) => email)).toEqual(['bob@people.example']);
    const log = await app.call('/org/audit-log?action=suppression.removed', { token: organization.token });
    expect(log.json().data).toEqual([expect.objectContaining({ reason: 'She wrote to us' })]);
  });

  test('name the message that caused them, and what its server said, escaped', async () => {
    const { browser, organization } = await arrange();
    const messageId = newId('message');
    await app.worker.db
      .insertInto('suppressions')
      .values({
        id: newId('suppression'),
        org_id: organization.organizationId,
        scope_id: organization.organizationId,
        email: 'gone@people.example',
        origin: 'bounce',
        message_id: messageId,
        status: '5.1.1',
        diagnostic: '550 <b>No such user</b>',
      })
      .execute();
    const page = await browser.open('/reputation/suppressions');
    expect(page.body).toContain('The address does not exist or takes no mail');
    expect(page.body).toContain(`/messages/${messageId}`);
    expect(page.body).toContain('5.1.1 · 550 &lt;b&gt;No such user&lt;/b&gt;');
  });

  test('come in pages', async () => {
    const { browser, organization } = await arrange();
    await app.worker.db
      .insertInto('suppressions')
      .values(
        Array.from({ length: 51 }, (_, index) => ({
          id: newId('suppression'),
          org_id: organization.organizationId,
          scope_id: organization.organizationId,
          email: `p${String(index).padStart(2, '0')}@people.example`,
          origin: 'manual' as const,
        })),
      )
      .execute();
    // A form submits the filters that are left empty, too.
    const first = await browser.open('/reputation/suppressions?search=people&origin=');
    const lift = '/reputation/suppressions/lift?search=people';
    const refused = await browser.submit(lift, { email: 'p00@people.example', reason: 'x'.repeat(501) });
    expect(refused.statusCode).toBe(400);
    for (const { body } of [first, refused]) {
      const [, next = ''] = /rel="next" href="([^"]+)"/.exec(body) ?? [];
      const second = await browser.open(next.replaceAll('&amp;', '&'));
      expect([next, second.statusCode]).toEqual([next, 200]);
      expect([...second.body.matchAll(/<strong class="wrap" dir="auto">p\d\d@/g)]).toHaveLength(1);
      expect(second.body).not.toContain('rel="next"');
    }
  });

  test('keep a mistyped address in its field', async () => {
    const { browser } = await arrange();
    await browser.open('/reputation/suppressions');
    const refused = await browser.submit('/reputation/suppressions', { email: 'ada' });
    expect(refused.statusCode).toBe(400);
    expect(refused.body).toContain('Email address is not an email address.');
    expect(refused.body).toContain('value="ada"');
  });
});

describe('the lists', () => {
  test.each(['send-block', 'send-allow', 'receive-block', 'receive-allow'])(
    '%s takes an entry and gives it back',
    async (list) => {
      const { browser } = await arrange();
      const path = `/reputation/lists?list=${list}`;
      expect((await browser.open(path)).body).toContain('The list is empty');
      const fields = { list, entry: ' Example.com ', applies_to: 'organization', inbox: '' };
      const added = await browser.submit('/reputation/lists', fields);
      expect(added.body).toContain('The entry is added.');
      expect(added.body).toContain('the domain and its subdomains');
      expect((await browser.submit('/reputation/lists', fields)).body).toContain(
        'The entry was there already.',
      );
      const removed = await browser.submit('/reputation/lists/remove', { list, entry: 'example.com' });
      expect(removed.body).toContain('The entry is removed.');
      expect(removed.body).toContain('The list is empty');
    },
  );

  test('take an entry of one inbox, and name the inbox', async () => {
    const { browser, organization } = await arrange();
    const inbox = await createInbox(app.worker, organization);
    await browser.open('/reputation/lists');
    const fields = { list: 'send-block', entry: 'eve@evil.example', applies_to: 'inbox' };
    const wrong = await browser.submit('/reputation/lists', { ...fields, inbox: 'x@y.example' });
    expect(wrong.statusCode).toBe(400);
    expect(wrong.body).toContain('Inbox is not an inbox here.');
    expect(wrong.body).toContain('value="eve@evil.example"');
    const added = await browser.submit('/reputation/lists', { ...fields, inbox: inbox.email });
    expect(added.body).toContain(`<bdi>${inbox.email}</bdi>`);
    await browser.submit('/reputation/lists/remove');
    expect((await browser.open('/reputation/lists')).body).toContain('The list is empty');
  });

  test('refuse an entry that is no address or domain', async () => {
    const { browser } = await arrange();
    await browser.open('/reputation/lists?list=receive-block');
    const fields = { list: 'receive-block', entry: 'com', applies_to: 'organization', inbox: '' };
    const refused = await browser.submit('/reputation/lists', fields);
    expect(refused.statusCode).toBe(400);
    expect(refused.body).toContain('class="field-error"');
    expect(refused.body).toContain('Add to “Never receive from”');
  });
});

describe('refused mail', () => {
  test('is listed with its reason in words, and filtered', async () => {
    const { browser, organization } = await arrange();
    const now = new Date();
    await app.worker.db
      .insertInto('refusals')
      .values({
        id: newId('refusal'),
        org_id: organization.organizationId,
        env_id: organization.productionEnvironmentId,
        direction: 'inbound',
        stage: 'rcpt',
        reason: 'unknown_mailbox',
        response_code: 550,
        response: '5.1.1 <i>No such mailbox</i>',
        sender: 'ada@people.example',
        recipient: 'nobody@shop.example',
        client_ip: '192.0.2.1',
        count: 3,
        hour: now,
        fingerprint: Buffer.from('one'),
        first_at: now,
        last_at: now,
      })
      .execute();
    const page = await browser.open('/reputation/refusals');
    for (const shown of ['No inbox has this address', 'ada@people.example', '&lt;i&gt;No such mailbox'])
      expect(page.body).toContain(shown);
    const of = async (query: string) => (await browser.open(`/reputation/refusals?${query}`)).body;
    expect(await of('direction=&reason=unknown_mailbox&from=ADA@people.example&to=')).toContain('192.0.2.1');
    expect(await of('reason=sender_blocked')).toContain('Nothing found');
    expect((await browser.open('/reputation/refusals?reason=invented')).statusCode).toBe(400);
  });
});

test('a viewer sees the screen and changes nothing', async () => {
  const { browser, suppress } = await arrange('viewer');
  await suppress('ada@people.example');
  for (const path of ['/reputation', '/reputation/suppressions', '/reputation/lists', '/reputation/refusals'])
    expect((await browser.open(path)).statusCode).toBe(200);
  const page = await browser.open('/reputation/suppressions');
  expect(page.body).not.toContain('/reputation/suppressions/lift');
  expect(page.body).toContain('ada@people.example');
});
