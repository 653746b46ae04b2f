import { describe, test } from '@jest/globals';
import type { EgressResult } from '../../platform/egress/egress.ts';
import { browserObstacle, expectFocus, openConsole, useBrowser } from '../support/console-browser.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';
import { arrangeDeliveries } from '../support/webhook-deliveries.ts';

const failed: EgressResult = {
  kind: 'response',
  status: 503,
  body: 'x'.repeat(4_096),
  headers: { 'content-type': 'text/plain', 'x-long': 'y'.repeat(256) },
  durationMs: 31,
};

(browserObstacle ? describe.skip : describe)('webhooks in Chromium', () => {
  const app = useTestApp();
  const browser = useBrowser();

  test.each([1280, 390] as const)('are created, watched live and looked into at %d pixels', async (width) => {
    const { organization, endpointId, deliveryIds, worker } = await arrangeDeliveries(app.worker, 3, {
      url: `https://receiver.example/${'h'.repeat(200)}`,
    });
    const [first = '', second = ''] = deliveryIds;
    const origin = await app.app.listen({ host: 'localhost', port: 0 }).catch(() => app.app.listeningOrigin);
    const { token } = await createTestSession(app.worker, organization.ownerId);
    const { page, visit, expectSound, close } = await openConsole(browser, origin, { token, width });
    await visit('/webhooks');
    await visit(`/webhooks/${endpointId}`);
    await worker(async () => failed).attempt(first, true);
    await page.getByText('The receiver answered 503: it failed.').first().waitFor();
    await page.getByRole('button', { name: 'Send a test event…' }).click();
    await page.getByRole('dialog').getByLabel('Event').waitFor();
    await expectSound();
    await page.keyboard.press('Escape');
    await visit(`/webhooks/deliveries/${first}`);
    await page.getByText('Answer', { exact: true }).click();
    await expectSound();
    await visit(`/webhooks/deliveries/${second}`);
    await worker(async () => ({ ...failed, status: 200 })).attempt(second, true);
    await page.getByText('Accepted').waitFor();
    await visit(`/webhooks/${endpointId}/replay`);
    await visit('/webhooks/new');
    await page.getByLabel('URL').fill('https://10.0.0.1/');
    await page.getByRole('button', { name: 'Create the endpoint' }).click();
    await page.locator('.field-error').waitFor();
    await expectFocus(page.getByLabel('URL'));
    await expectSound();
    await page.getByLabel('URL').fill('https://receiver.example/new');
    await page.getByRole('button', { name: 'Create the endpoint' }).click();
    await page.getByText(/^whsec_/).waitFor();
    await page.getByRole('button', { name: 'Copy the signing secret' }).waitFor();
    await expectSound();
    await close();
  });
});
