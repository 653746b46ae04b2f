import { mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser } from 'playwright-core';
import { launchBrowser } from '../test/support/browser.ts';
import { SCREENS } from '../web/shell/navigation.ts';
import type { FirstRun } from './first-run.ts';

/**
 * `npm run screenshots -- [--first-run FILE] [--out FOLDER]`: every screen of the console with the demo's data (`npm start`,
 * `npm run demo`), at 1280 and 390 pixels, light and dark. Pages of details are found by the links of the lists.
 */
const { values } = parseArgs({
  options: {
    'first-run': { type: 'string', default: '.data/first-run.json' },
    out: { type: 'string', default: '.data/screenshots' },
  },
});
const service = JSON.parse(readFileSync(resolve(values['first-run']), 'utf8')) as FirstRun;
const folder = resolve(values.out);
mkdirSync(folder, { recursive: true });

/** Links of a list to one of its things. The first one of each kind is shown. */
const DETAIL =
  /^\/(?:inboxes|threads|messages|drafts|approvals|domains|webhooks|webhooks\/deliveries|keys)\/[a-z]{3}_\w+(?:\/settings)?$/;
const VIEWS = ([1280, 390] as const).flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
);

const browser = await launchBrowser();
try {
  const token = await signIn();
  const paths = await findPages(browser, token);
  for (const view of VIEWS) await takePictures(browser, token, { ...view, paths });
  console.log(`${paths.length * VIEWS.length} pictures in ${folder}`);
} finally {
  await browser.close();
}

async function signIn(): Promise<string> {
  const response = await fetch(`${service.base_url}/api/v1/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(service.owner),
  });
  if (!response.ok) throw new Error(`Signing in returned ${response.status}`);
  return ((await response.json()) as { token: string }).token;
}

async function openPage(
  chromium: Browser,
  token: string,
  { width, colorScheme }: (typeof VIEWS)[number] = { width: 1280, colorScheme: 'light' },
) {
  const { origin } = new URL(service.sign_in_url);
  const context = await chromium.newContext({ viewport: { width, height: 900 }, colorScheme });
  await context.addCookies([{ name: 'session', value: token, url: origin }]);
  const page = await context.newPage();
  return { page, open: (path: string) => page.goto(`${origin}${path}`), close: () => context.close() };
}

/** The screens of the sidebar, and one page of each kind that their lists lead to. */
async function findPages(chromium: Browser, token: string): Promise<string[]> {
  const { page, open, close } = await openPage(chromium, token);
  const found = new Map(SCREENS.map(({ path }) => [path, path]));
  for (const path of found.values()) {
    await open(path);
    const links = await page
      .locator('main a[href]')
      .evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''));
    for (const link of links) {
      const kind = link.replace(/[a-z]{3}_\w+/, ':id');
      if (DETAIL.test(link) && !found.has(kind)) found.set(kind, link);
    }
  }
  await close();
  return [...found.values()];
}

async function takePictures(
  chromium: Browser,
  token: string,
  { paths, ...view }: (typeof VIEWS)[number] & { paths: readonly string[] },
): Promise<void> {
  const { page, open, close } = await openPage(chromium, token, view);
  for (const path of paths) {
    await open(path);
    const name = path
      .slice(1)
      .replace(/[a-z]{3}_\w+/, 'one')
      .replaceAll('/', '-');
    const file = `${name}-${view.width}-${view.colorScheme}.png`;
    await page.screenshot({ path: join(folder, file), fullPage: true });
  }
  await close();
}
