import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from '@jest/globals';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { findBrowserObstacle, launchBrowser } from './browser.ts';
import { eventually } from './eventually.ts';
import { useResource } from './use-resource.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

interface Axe {
  run(
    context: unknown,
    options: object,
  ): Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }>;
}

/** A page of Chromium, signed in to the console. */
export interface ConsolePage {
  page: Page;
  /** Requests that left for another origin, script errors, dialogs and violations of the content security policy. */
  complaints: string[];
  /** Opens a path, and expects what {@link ConsolePage.expectSound} does. */
  visit(path: string): Promise<void>;
  /** Expects that the page as it is now is accessible, fits the window and has no complaints. */
  expectSound(): Promise<void>;
  resize(width: 390 | 1280): Promise<void>;
  close(): Promise<void>;
}

export const browserObstacle = findBrowserObstacle();
if (browserObstacle) process.stderr.write(`Tests of pages in a browser are skipped: ${browserObstacle}.\n`);

/** Chromium for the tests of a file. */
export const useBrowser = () => useResource(launchBrowser, (running) => running.close());

/** Expects that an element has the focus. What `autofocus` names gets it with the first frame, after the page has loaded. */
export const expectFocus = (element: Locator) =>
  eventually(async () =>
    expect(await element.evaluate((node) => node === node.ownerDocument.activeElement)).toBe(true),
  );

/** @param token a session; undefined for a person who has none. */
export async function openConsole(
  browser: Browser,
  origin: string,
  { token, width = 1280, ...options }: BrowserContextOptions & { token?: string; width?: 390 | 1280 } = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({ viewport: { width, height: 900 }, ...options });
  if (token !== undefined) await context.addCookies([{ name: 'session', value: token, url: origin }]);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) complaints.push(message.text());
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !/^(?:data|blob|about):/.test(url)) complaints.push(`request: ${url}`);
  });

  async function expectSound(): Promise<void> {
    // A script of the developer tools, to which the policy of the page does not apply.
    const session = await context.newCDPSession(page);
    await session.send('Runtime.evaluate', { expression: AXE });
    const found = await page.evaluate(async (runOnly) => {
      const { axe } = globalThis as unknown as { axe: Axe };
      // Frames with strangers' mail run no scripts. By default axe describes each element that keeps to a rule, too.
      const { violations } = await axe.run(document, {
        runOnly,
        iframes: false,
        resultTypes: ['violations'],
      });
      return {
        violations: violations.map(
          ({ id, nodes }) =>
            `${id}: ${nodes[0]?.html.slice(0, 200)} ${nodes[0]?.failureSummary?.slice(0, 200)}`,
        ),
        overflow: Math.max(0, document.documentElement.scrollWidth - innerWidth),
      };
    }, RULES);
    expect([page.url(), found, complaints]).toEqual([page.url(), { violations: [], overflow: 0 }, []]);
  }

  return {
    page,
    complaints,
    async visit(path) {
      const response = await page.goto(new URL(path, origin).href);
      expect([path, response?.status()]).toEqual([path, 200]);
      await expectSound();
    },
    expectSound,
    resize: (size) => page.setViewportSize({ width: size, height: 900 }),
    close: () => context.close(),
  };
}
