import { describe, expect, test } from '@jest/globals';
import { createAccountQuickly } from '../support/accounts.ts';
import { createConnection } from '../support/connections.ts';
import { browserObstacle, openConsole, useBrowser } from '../support/console-browser.ts';
import { createKey } from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';

const DAY_MS = 86_400_000;

(browserObstacle ? describe.skip : describe)('keys, requests and usage in Chromium', () => {
  const app = useTestApp();
  const browser = useBrowser();

  test('a person finds a key unused for a month, revokes it, and creates another one', async () => {
    const origin = await app.app.listen({ host: 'localhost', port: 0 });
    const person = await createAccountQuickly(app);
    const { organizationId, token } = person;
    const { keyId } = await createKey(app.worker, { organizationId });
    const name = 'W'.repeat(200);
    await app.worker.db
      .updateTable('api_keys')
      .set({ name, created_at: new Date(Date.now() - 90 * DAY_MS) })
      .where('id', '=', keyId)
      .execute();
    await createConnection(app.worker, person);
    const { page, visit, expectSound, resize, close } = await openConsole(browser, origin, {
      token,
      width: 390,
    });

    await visit('/keys');
    await page.getByLabel('Use').selectOption('unused');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByRole('link', { name }).click();
    await page.getByText('Nothing has used this key for a month.').waitFor();
    await expectSound();
    await page.getByRole('button', { name: 'Revoke…' }).click();
    await page.getByRole('dialog').getByText('cannot be undone').waitFor();
    await expectSound();
    await page.getByRole('button', { name: 'Revoke the key' }).click();
    await page.getByText('The API key is revoked.').waitFor();

    await resize(1280);
    await visit('/keys/new');
    await page.getByRole('link', { name: 'Only reading' }).click();
    await page.getByLabel('Name').fill('مساعد 🤖');
    await page.getByLabel('Send messages, reply and forward').check();
    await page.getByLabel('Allowed addresses').fill('nowhere');
    await page.getByRole('button', { name: 'Create the key' }).click();
    await page.locator('#field-allowed_cidrs-error').waitFor();
    // A box that lies half under the bar at the top counts as too small.
    await page.evaluate(() => scrollTo(0, 0));
    expect(await page.getByLabel('Send messages, reply and forward').isChecked()).toBe(true);
    await expectSound();
    await page.getByLabel('Allowed addresses').fill('');
    await page.getByRole('button', { name: 'Create the key' }).click();
    await page.getByText('It is shown only now.').waitFor();
    const shown = (await page.locator('#api-key').textContent()) ?? '';
    expect(shown).toMatch(/^ask_live_/);
    await expectSound();
    expect((await app.call('/inboxes', { token: shown })).statusCode).toBe(200);
    await page.getByRole('link', { name: 'I have stored it' }).click();
    await page.getByRole('button', { name: 'Rotate…' }).click();
    await page.getByRole('button', { name: 'Show a new token' }).click();
    await page.getByText('The old token works for another day.').waitFor();
    await close();
  }, 60_000);

  test('every screen is accessible and fits, in light and dark', async () => {
    const origin = `http://localhost:${new URL(app.app.listeningOrigin).port}`;
    const person = await createAccountQuickly(app);
    await createConnection(app.worker, person);
    await app.call('/inboxes/inb_x', { token: person.token });
    for (const [width, colorScheme] of [
      [390, 'dark'],
      [1280, 'light'],
    ] as const) {
      const { visit, close } = await openConsole(browser, origin, {
        token: person.token,
        width,
        colorScheme,
      });
      for (const path of [
        '/keys/connections',
        '/requests',
        '/requests?result=failed',
        '/usage',
        '/usage?graph=storage',
      ])
        await visit(path);
      await close();
    }
  }, 60_000);
});
