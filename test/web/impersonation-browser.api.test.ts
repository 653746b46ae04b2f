import { describe, expect, test } from '@jest/globals';
import { findBrowserObstacle, launchBrowser } from '../support/browser.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { setPolicies } from '../support/policies.ts';
import { useTestApp } from '../support/resources.ts';
import { createStaff } from '../support/staff.ts';
import { useResource } from '../support/use-resource.ts';

const obstacle = findBrowserObstacle();
if (obstacle) console.warn(`Tests of pages in a browser are skipped: ${obstacle}`);

(obstacle ? describe.skip : describe)('an impersonation in Chromium', () => {
  const app = useTestApp();
  const browser = useResource(launchBrowser, (running) => running.close());

  test('shows what approvers see, with a banner on every page, until its button is pressed', async () => {
    const organization = await createOrganization(app.worker);
    const { organizationId, token } = organization;
    const inbox = await createInbox(app.worker, organization);
    await setPolicies(app.worker, organizationId, { require_send_approval: 'all' });
    const content = {
      to: ['ada@people.example'],
      subject: 'Offer',
      text_body: 'Dear Ada,\nour price is 10.\nGrace',
    };
    const sent = await app.call(`/inboxes/${inbox.id}/messages`, { method: 'POST', token, body: content });
    const draftId = sent.json().id as string;
    const change = { text_body: 'Dear Ada,\nour price is 20.\nGrace' };
    await app.call(`/drafts/${draftId}`, { method: 'PATCH', token, body: change });
    const origin = await app.app.listen({ host: 'localhost', port: 0 });
    const staff = await createStaff(app, { role: 'support' });
    const context = await browser.newContext();
    await context.addCookies([{ name: 'session', value: staff.token, url: origin }]);
    const page = await context.newPage();
    await page.goto(`${origin}/admin/organizations/${organizationId}/impersonations`);
    await page.getByLabel('Reason').fill('Ticket 7');
    await page.getByRole('button', { name: 'Begin' }).click();
    const banner = page.getByRole('complementary', { name: 'Impersonation' });
    await banner.getByText('You see this organization as staff').waitFor();
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Approvals' }).click();
    await page.getByRole('link', { name: 'Offer' }).click();
    await banner.waitFor();
    const difference = page.getByRole('region', { name: /Changed since/ });
    expect(await difference.locator('del').allTextContents()).toEqual(['Removed: our price is 10.']);
    expect(await difference.locator('ins').allTextContents()).toEqual(['Added: our price is 20.']);
    await page.getByText('This message waits for the decision of a person of the organization.').waitFor();
    expect(await page.getByRole('button').allTextContents()).toEqual([
      'End',
      'Environment: production ▾',
      'Sign out',
    ]);
    await banner.getByRole('button', { name: 'End' }).click();
    await page.waitForURL(/\/admin/);
    expect((await context.cookies()).map(({ name }) => name)).not.toContain('impersonation');
    await page.goto(`${origin}/settings?org=${organizationId}`);
    expect(await banner.count()).toBe(0);
    await context.close();
  });
});
