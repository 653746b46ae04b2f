import { describe, expect, test } from '@jest/globals';
import { browserObstacle, openConsole, useBrowser } from '../support/console-browser.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { eventually } from '../support/eventually.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { setPolicies } from '../support/policies.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';
import { useResource } from '../support/use-resource.ts';

/** As long as a name of mail may be, without a place to break, and from right to left. */
const LONG = 'x'.repeat(200);
const SUBJECT = `${LONG} 📨 \u0627\u0644\u0633\u0639\u0631 <b>now</b>`;

(browserObstacle ? describe.skip : describe)('approvals, drafts, domains and reputation in Chromium', () => {
  const server = useResource(startDnsServer, (dns) => dns.stop());
  const app = useTestApp(() => ({
    config: { DNS_SERVERS: server.address, DNS_TIMEOUT_MS: '100', DNS_TRIES: '1' },
  }));
  const browser = useBrowser();
  let origin: Promise<string> | undefined;
  const listen = () => {
    origin ??= app.app.listen({ host: 'localhost', port: 0 });
    return origin;
  };

  async function arrange() {
    const organization = await createOrganization(app.worker);
    const { organizationId, token, ownerId } = organization;
    const inbox = await createInbox(app.worker, organization);
    const session = await createTestSession(app.worker, ownerId);
    const call = async (path: string, body: object) => {
      const answer = await app.call(path, { method: 'POST', token, body });
      expect([path, answer.statusCode < 300]).toEqual([path, true]);
      return answer.json<{ id: string }>();
    };
    const pend = async (content: object = {}) => {
      await setPolicies(app.worker, organizationId, { require_send_approval: 'all' });
      const to = [{ email: `${'a'.repeat(64)}@${'b'.repeat(60)}.${'c'.repeat(60)}.example`, name: LONG }];
      return call(`/inboxes/${inbox.id}/messages`, { to, subject: SUBJECT, text_body: LONG, ...content });
    };
    return { organization, inbox, token: session.token, call, pend };
  }

  test.each([
    [390, 'dark'],
    [1280, 'light'],
  ] as const)(
    'every screen is accessible and fits %d pixels with hostile content',
    async (width, colorScheme) => {
      const { call, inbox, pend, token } = await arrange();
      const draft = await call(`/inboxes/${inbox.id}/drafts`, { subject: SUBJECT, text_body: LONG });
      const waiting = await pend({ html_body: `<p>${LONG}</p>` });
      const { id: domainId } = await call('/domains', {
        domain_name: `${'d'.repeat(60)}.${'e'.repeat(60)}.example`,
      });
      const email = `${'a'.repeat(64)}@${'b'.repeat(60)}.example`;
      await call('/suppressions', { email });
      await call('/lists/send/block', { entry: email });
      const { visit, close } = await openConsole(browser, await listen(), { token, width, colorScheme });
      const decided = [`/drafts/${waiting.id}`, `/approvals/${waiting.id}`, `/domains/${domainId}`];
      const listed = [
        '/drafts',
        `/drafts/${draft.id}`,
        '/approvals',
        '/domains',
        '/reputation',
        '/reputation/suppressions',
        '/reputation/lists',
        '/reputation/refusals',
      ];
      // Lists have the same parts at every width; the narrow one is where they break.
      for (const path of width === 390 ? [...decided, ...listed] : decided) await visit(path);
      await close();
    },
  );

  test('keys go to a decision and make none; the next message follows', async () => {
    const { pend, token, organization } = await arrange();
    const first = await pend({ subject: 'First' });
    const second = await pend({
      subject: 'Second',
      html_body: '<p><b>Our price</b> <img src="https://track.example/x.png" alt="logo"></p>',
    });
    const { page, visit, close, complaints } = await openConsole(browser, await listen(), { token });
    await visit(`/approvals/${first.id}`);
    await page.keyboard.press('j');
    await page.waitForURL(`**/approvals/${second.id}`);
    await page.frameLocator('iframe.message').getByText('Our price').waitFor();
    // Nothing of another server is loaded.
    expect(complaints).toEqual([]);
    await page.keyboard.press('k');
    await page.waitForURL(`**/approvals/${first.id}`);
    await page.getByLabel('Note').fill('');
    await page.keyboard.type('ajrk');
    expect(await page.getByLabel('Note').inputValue()).toBe('ajrk');
    await page.getByRole('heading', { level: 1 }).click();
    await page.keyboard.press('a');
    const focused = () => page.evaluate(() => document.activeElement?.textContent);
    expect(await focused()).toBe('Approve and send');
    await page.keyboard.press('r');
    expect(await focused()).toBe('Reject');
    expect((await app.call(`/drafts/${first.id}`, { token: organization.token })).json()).toMatchObject({
      send_status: 'pending_approval',
    });
    await page.keyboard.press('Enter');
    await page.getByRole('status').getByText('The message is rejected.').waitFor();
    expect(page.url()).toContain(second.id);
    await page.getByText('Keyboard shortcuts', { exact: true }).click();
    await page.getByLabel('Use these keys').uncheck();
    await page.getByRole('heading', { level: 1 }).click();
    await page.keyboard.press('a');
    expect(await focused()).not.toBe('Approve and send');
    await close();
  });

  test('the list of approvals follows what happens', async () => {
    const { pend, token } = await arrange();
    const { page, visit, close } = await openConsole(browser, await listen(), { token });
    await visit('/approvals');
    await page.getByText('Nothing waits for your approval').waitFor();
    await pend({ subject: 'It is here' });
    await page.getByRole('link', { name: 'It is here' }).waitFor({ timeout: 10_000 });
    await close();
  });

  test('a time is chosen in the time zone of the person', async () => {
    const { call, inbox, token } = await arrange();
    const { id } = await call(`/inboxes/${inbox.id}/drafts`, {
      subject: 'Later',
      to: ['ada@people.example'],
    });
    const { page, visit, close } = await openConsole(browser, await listen(), {
      token,
      timezoneId: 'Asia/Tokyo',
    });
    await visit(`/drafts/${id}`);
    await page.getByText('In your time zone (Asia/Tokyo)').waitFor();
    await page.getByLabel('Send at').fill('2030-05-01T09:00');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('status').getByText('Saved.').waitFor();
    expect(await page.getByLabel('Send at').inputValue()).toBe('2030-05-01T09:00');
    const [stored] = await app.worker.db
      .selectFrom('drafts')
      .select('send_at')
      .where('id', '=', id)
      .execute();
    expect(stored?.send_at).toEqual(new Date('2030-05-01T00:00:00Z'));
    await close();
  });

  test('a domain shows its records as they appear', async () => {
    const { call, token } = await arrange();
    const { id } = await call('/domains', { domain_name: `d${Date.now()}.example` });
    const { page, visit, close } = await openConsole(browser, await listen(), { token });
    await page.clock.install();
    await visit(`/domains/${id}`);
    await app.worker.db
      .updateTable('domains')
      .set({ verification_status: 'verified', next_check_at: null, last_checked_at: new Date() })
      .where('id', '=', id)
      .execute();
    await eventually(async () => {
      await page.clock.runFor(10_000);
      expect(await page.locator('.state').textContent()).toContain('verified');
    });
    await close();
  });
});
