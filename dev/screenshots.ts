import { mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { generate } from 'otplib';
import type { BrowserContext, Page } from 'playwright-core';
import { launchBrowser } from '../test/support/browser.ts';
import type { FirstRun } from './first-run.ts';

/**
 * `npm run screenshots -- [--first-run FILE] [--out FOLDER]`: every page of the console with the demo's data (`npm start`,
 * `npm run demo`), at 1280 and 390 pixels, light and dark: those that links lead to before signing in, as the owner, and as
 * staff. Of pages that differ only in an id, the first one is shown.
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

const { origin } = new URL(service.sign_in_url);
type Cookies = Awaited<ReturnType<BrowserContext['cookies']>>;

const VISITORS: { name: string; start: string; signIn?: (page: Page) => Promise<void> }[] = [
  { name: 'visitor', start: '/login' },
  { name: 'owner', start: '/overview', signIn: (page) => signIn(page, service.owner) },
  { name: 'staff', start: '/admin', signIn: (page) => signIn(page, service.staff) },
];
const VIEWS = ([1280, 390] as const).flatMap((width) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ width, colorScheme })),
);

const browser = await launchBrowser();
try {
  for (const visitor of VISITORS) {
    const cookies = await collectCookies(visitor);
    const paths = await findPages(cookies, visitor.start);
    for (const view of VIEWS) await takePictures(cookies, paths, { ...view, name: visitor.name });
    console.log(`${visitor.name}: ${paths.length * VIEWS.length} pictures in ${folder}`);
  }
} finally {
  await browser.close();
}

async function collectCookies({ signIn: enter }: (typeof VISITORS)[number]): Promise<Cookies> {
  return withPage([], {}, async (page) => {
    await enter?.(page);
    return page.context().cookies();
  });
}

async function signIn(
  page: Page,
  { email, password, totp_secret: secret }: { email: string; password: string; totp_secret?: string },
): Promise<void> {
  await page.goto(`${origin}/login`);
  await page.fill('#sign-in input[name="email"]', email);
  await page.fill('#sign-in input[name="password"]', password);
  await page.press('#sign-in input[name="password"]', 'Enter');
  await page.waitForLoadState();
  if (secret) {
    const code = page.locator('form:has(input[value="totp"]) input[name="code"]');
    await code.fill(await generate({ secret }));
    await code.press('Enter');
  }
  await page.waitForURL((url) => !url.pathname.startsWith('/login'));
}

async function withPage<Result>(
  cookies: Cookies,
  view: { width?: number; colorScheme?: 'light' | 'dark' },
  use: (page: Page) => Promise<Result>,
): Promise<Result> {
  const { width = 1280, colorScheme = 'light' } = view;
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
  await context.addCookies(cookies);
  try {
    return await use(await context.newPage());
  } finally {
    await context.close();
  }
}

/** Paths of pages that differ in more than an id or a filter, from the first page on. */
async function findPages(cookies: Cookies, start: string): Promise<string[]> {
  const found = new Map([[start, start]]);
  const pages: string[] = [];
  await withPage(cookies, {}, async (page) => {
    // Links of the pages that are found meanwhile are followed, too.
    for (const path of found.values()) {
      const { headers, ok } = await page.request
        .get(`${origin}${path}`)
        .then((response) => ({ headers: response.headers(), ok: response.ok() }));
      // Files to download, and mail in a frame of its own.
      if (!ok || !headers['content-type']?.startsWith('text/html') || headers['content-disposition'])
        continue;
      await page.goto(`${origin}${path}`);
      pages.push(path);
      const links = await page
        .locator('a[href^="/"]')
        .evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''));
      for (const link of links) {
        const kind = link.replace(/[?#].*/, '').replaceAll(/[a-z]{3}_\w+/g, ':id');
        if (!found.has(kind) && !/^\/(?:docs|api|assets)(?:\/|$)/.test(kind))
          found.set(kind, link.replace(/#.*/, ''));
      }
    }
  });
  return pages;
}

async function takePictures(
  cookies: Cookies,
  paths: readonly string[],
  { name, ...view }: (typeof VIEWS)[number] & { name: string },
): Promise<void> {
  await withPage(cookies, view, async (page) => {
    for (const path of paths) {
      await page.goto(`${origin}${path}`);
      const file = path
        .slice(1)
        .replace(/[?#].*/, '')
        .replaceAll(/[a-z]{3}_\w+/g, 'one')
        .replaceAll('/', '-');
      await page.screenshot({
        path: join(folder, `${name}-${file}-${view.width}-${view.colorScheme}.png`),
        fullPage: true,
      });
    }
  });
}
