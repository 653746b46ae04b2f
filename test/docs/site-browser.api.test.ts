import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Browser, Page } from 'playwright-core';
import { findFreePort } from '../../dev/stack/ports.ts';
import { findBrowserObstacle, launchBrowser } from '../support/browser.ts';
import { siteOf } from '../support/documents.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';

const obstacle = findBrowserObstacle();
if (obstacle) process.stderr.write(`The test of the documents in a browser is skipped: ${obstacle}.\n`);

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** With tables, images, diagrams, samples in several languages, fields, forms. */
const PAGES = ['/docs', '/docs/identity', '/docs/recipes', '/docs/search', '/docs/no-such-page'].concat(
  '/docs/reference/threads',
);
const WIDTHS = [390, 1280];

interface Axe {
  run(
    context: unknown,
    options: object,
  ): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
}

(obstacle ? describe.skip : describe)('Chromium', () => {
  let app: TestApp;
  let browser: Browser;
  let origin: string;
  const complaints: string[] = [];

  beforeAll(async () => {
    const port = await findFreePort();
    origin = `http://localhost:${port}`;
    app = await startTestApp({ config: { PUBLIC_URL: origin }, readSite: () => readSite() });
    await app.app.listen({ host: '127.0.0.1', port });
    browser = await launchBrowser();
  });
  const readSite = siteOf(() => app);
  afterAll(async () => {
    await browser?.close();
    await app?.close();
  });

  /** A page in a profile of its own, whose complaints fail the test. */
  async function open(path: string, options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.on('pageerror', (error) => complaints.push(`${path}: ${error.message}`));
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) complaints.push(`${path}: ${message.text()}`);
    });
    await page.goto(origin + path);
    return page;
  }

  test.each(
    WIDTHS.flatMap((width) => (['light', 'dark'] as const).map((scheme) => [width, scheme] as const)),
  )('at %d pixels in %s colors, pages are accessible and fit the window', async (width, colorScheme) => {
    const page = await open('/docs', { viewport: { width, height: 850 }, colorScheme });
    for (const path of PAGES) {
      await page.goto(origin + path);
      // A script of the developer tools, to which the policy of the page does not apply.
      const session = await page.context().newCDPSession(page);
      await session.send('Runtime.evaluate', { expression: AXE });
      const found = await page.evaluate(async () => {
        const { axe } = globalThis as unknown as { axe: Axe };
        const { violations } = await axe.run(document, {
          runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
          // Otherwise it describes each element that keeps to a rule, too.
          resultTypes: ['violations'],
        });
        return {
          violations: violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)}`),
          overflow: document.documentElement.scrollWidth - innerWidth,
        };
      });
      expect([path, found]).toEqual([path, { violations: [], overflow: 0 }]);
    }
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  test('the search opens with a key, and its results with the arrow keys', async () => {
    const page = await open('/docs/webhooks');
    await page.keyboard.press('/');
    await page.getByRole('dialog').getByRole('searchbox').fill('one-time code');
    await page.locator('dialog .results a').first().waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/docs\/[\w-]+#[\w-]+$/);
    expect(await page.locator(':target').count()).toBe(1);
    await page.keyboard.press('/');
    await page.keyboard.press('Escape');
    expect(await page.getByRole('dialog').count()).toBe(0);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  test('the search page takes the words from its address, and a page that is missing leads there', async () => {
    const page = await open('/docs/no-such-page');
    await page.getByRole('searchbox').fill('bounce');
    await page.getByRole('searchbox').press('Enter');
    await page.waitForURL(/\/docs\/search\?q=/);
    await page.locator('main .results a').first().waitFor();
    expect(await page.locator('main .results').textContent()).toMatch(/bounce/i);
    await page.context().close();
  });

  test('a chosen theme stays on the next page, also against the system', async () => {
    const page = await open('/docs', { colorScheme: 'light', viewport: { width: 1280, height: 800 } });
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.getByRole('button', { name: 'Theme: auto' }).click();
    await page.getByRole('button', { name: 'Theme: light' }).click();
    const dark = await background();
    expect(dark).not.toBe(light);
    await page.goto(`${origin}/docs/webhooks`);
    expect(await background()).toBe(dark);
    await page.context().close();
  });

  test('without scripts, pages can be read and all of them are listed', async () => {
    const page = await open('/docs/search', {
      javaScriptEnabled: false,
      viewport: { width: 390, height: 800 },
    });
    expect(await page.locator('.all-pages a').count()).toBeGreaterThan(55);
    await page.goto(`${origin}/docs/webhooks`);
    await page.getByText('Menu').click();
    await page.getByRole('link', { name: 'Reading mail', exact: true }).click();
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain('Reading mail');
    await page.context().close();
  });
});
