import { describe, expect, test } from '@jest/globals';
import { findBrowserObstacle, launchBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { setPolicies } from '../support/policies.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';
import { useResource } from '../support/use-resource.ts';

const obstacle = findBrowserObstacle();
if (obstacle) console.warn(`Tests of pages in a browser are skipped: ${obstacle}`);

(obstacle ? describe.skip : describe)('the page of approvals in Chromium', () => {
  const app = useTestApp();
  const browser = useResource(launchBrowser, (running) => running.close());

  test('shows the message in a frame that runs nothing and loads nothing, and approves it', async () => {
    const organization = await createOrganization(app.worker);
    const { organizationId, token, ownerId } = organization;
    const inbox = await createInbox(app.worker, organization);
    await setPolicies(app.worker, organizationId, { require_send_approval: 'all' });
    const sent = await app.call(`/inboxes/${inbox.id}/messages`, {
      method: 'POST',
      token,
      body: {
        to: ['ada@people.example'],
        subject: 'Offer',
        html_body: '<p><b>Our price</b> <img src="https://track.example/x.png" alt="logo"></p>',
      },
    });
    const draftId = sent.json().id as string;
    const origin = await app.app.listen({ host: 'localhost', port: 0 });
    const session = await createTestSession(app.worker, ownerId);
    const context = await browser.newContext({ colorScheme: 'dark' });
    await context.addCookies([{ name: 'session', value: session.token, url: origin }]);
    const page = await context.newPage();
    const answered: string[] = [];
    const blocked: string[] = [];
    page.on('response', (response) => answered.push(response.url()));
    page.on('requestfailed', (request) => blocked.push(`${request.url()} ${request.failure()?.errorText}`));
    await page.goto(`${origin}/approvals`);
    await page.getByRole('link', { name: 'Offer' }).click();
    const frame = page.frameLocator('iframe.message');
    await frame.getByText('Our price').waitFor();
    await eventually(async () => expect(blocked).toEqual(['https://track.example/x.png csp']));
    expect(answered.filter((url) => !url.startsWith(origin))).toEqual([]);
    await page.getByLabel('Note').fill('Fine');
    await page.getByRole('button', { name: 'Approve and send' }).click();
    await page.getByRole('status').getByText('The message is approved.').waitFor();
    expect((await app.call(`/drafts/${draftId}`, { token })).json().message_id).toMatch(/^msg_/);
    await context.close();
  });
});
