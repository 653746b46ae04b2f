import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, jest, test } from '@jest/globals';
import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { SCREENS } from '../../web/shell/navigation.ts';
import { readAccountMail } from '../support/account-mail.ts';
import { newAddress, PASSWORD } from '../support/accounts.ts';
import { browserObstacle, openConsole, useBrowser } from '../support/console-browser.ts';
import { fillWithHostileContent, type HostileContent } from '../support/hostile-content.ts';
import { query } from '../support/query.ts';
import { useObjectStorage, useTestApp } from '../support/resources.ts';

jest.setTimeout(180_000);

/** Pages that the walk opens, by their paths in the code, with what they show. Screens of the sidebar are walked anyway. */
const DETAILS: Record<string, (content: HostileContent) => string> = {
  '/account': () => '/account',
  '/approvals/:id': ({ pendingDraft }) => `/approvals/${pendingDraft}`,
  '/domains/:id': ({ domain }) => `/domains/${domain}`,
  '/drafts/:id': ({ draft }) => `/drafts/${draft}`,
  '/inboxes/:id': ({ inbox }) => `/inboxes/${inbox}`,
  '/inboxes/:id/compose': ({ inbox, inboundMessage }) =>
    `/inboxes/${inbox}/compose?mode=reply&reply_to=${inboundMessage}`,
  '/inboxes/:id/settings': ({ inbox }) => `/inboxes/${inbox}/settings`,
  '/inboxes/new': () => '/inboxes/new',
  '/keys/:id': ({ key }) => `/keys/${key}`,
  '/keys/connections': () => '/keys/connections',
  '/keys/new': () => '/keys/new',
  '/messages/:id': ({ inboundMessage }) => `/messages/${inboundMessage}`,
  '/messages/:id (sent)': ({ outboundMessage }) => `/messages/${outboundMessage}`,
  '/organizations': () => '/organizations',
  '/reputation/lists': () => '/reputation/lists',
  '/reputation/refusals': () => '/reputation/refusals',
  '/reputation/suppressions': () => '/reputation/suppressions',
  '/settings/closing': () => '/settings/closing',
  '/settings/environments': () => '/settings/environments',
  '/settings/policies': () => '/settings/policies',
  '/settings/retention': () => '/settings/retention',
  '/settings/sending': () => '/settings/sending',
  '/settings/single-sign-on': () => '/settings/single-sign-on',
  '/threads/:id': ({ thread }) => `/threads/${thread}`,
  '/webhooks/:id': ({ endpoint }) => `/webhooks/${endpoint}`,
  '/webhooks/:id/edit': ({ endpoint }) => `/webhooks/${endpoint}/edit`,
  '/webhooks/:id/replay': ({ endpoint }) => `/webhooks/${endpoint}/replay`,
  '/webhooks/deliveries/:id': ({ delivery }) => `/webhooks/deliveries/${delivery}`,
  '/webhooks/new': () => '/webhooks/new',
};

/** Answers that are no pages of the console, or pages that another test opens. */
const ELSEWHERE: [pattern: RegExp, why: string][] = [
  [/\/live$/, 'a stream, which the tests of its page follow'],
  [
    /\/(?:files\/:attachmentId|html|json|raw|message|zone-file|records|progress)$/,
    'a file, frame or part of its page',
  ],
  [/^\/messages\/:id\/leave$/, 'strangers-browser.api.test.ts'],
  [
    /^\/(?:login|signup|verify-email|forgot-password|reset-password|recover|change-email)/,
    'the forms of accounts',
  ],
  [/^\/invitations\/accept$/, 'invitation-pages.api.test.ts'],
  [/^\/_components$/, 'components-browser.api.test.ts'],
  [/^\/billing$/, 'needs billing: billing tests'],
  [/^\/organization(?:\/|$)/, 'leads to the pages of settings'],
  [/^\/$/, 'leads to sign-in or Overview'],
  [/^\/assets\//, 'a file'],
];

const WEB = join(import.meta.dirname, '../../web');
/** GET routes in the code of the console; the staff console has tests of its own. */
const ROUTES = readdirSync(WEB, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.routes.ts') && !name.startsWith('staff/'))
  .flatMap((name) => [...readFileSync(join(WEB, name), 'utf8').matchAll(/\.get\(\s*'([^']+)'/g)])
  .map(([, path = '']) => path);

const screens = SCREENS.filter(({ path }) => ROUTES.includes(path)).map(({ path }) => path);
const details = Object.entries(DETAILS).filter(([path]) => ROUTES.includes(path.replace(' (sent)', '')));

test('every page is walked, or opened by another test', () => {
  const known = (path: string) =>
    path in DETAILS ||
    SCREENS.some((screen) => screen.path === path) ||
    ELSEWHERE.some(([pattern]) => pattern.test(path));
  expect(ROUTES.filter((path) => !known(path))).toEqual([]);
  expect(screens).toEqual(SCREENS.map(({ path }) => path));
});

(browserObstacle ? describe.skip : describe)('the console in Chromium', () => {
  const s3 = useObjectStorage();
  const app = useTestApp(() => ({ config: s3.environment }));
  const browser = useBrowser();

  test('is walked from sign-up on: empty, and then full of texts that break pages', async () => {
    const origin = await app.app.listen({ host: 'localhost', port: 0 });
    const { page, visit, expectSound, resize, close } = await openConsole(browser, origin);
    const email = newAddress();

    await visit('/signup');
    await page.getByLabel('Your name').fill('Ada Lovelace');
    await page.getByLabel('Organization').fill('Analytical Engines');
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password').fill('short');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign up', exact: true }).click();
    await page.getByRole('heading', { name: 'Check your mailbox' }).waitFor();
    await expectSound();
    const [mail] = await readAccountMail(app, email);
    await visit(`/verify-email?token=${mail?.token}`);
    await page.getByRole('button', { name: 'Confirm my address' }).click();
    await page.waitForURL(`${origin}/overview`);
    const token = (await page.locator('#api-key').textContent()) ?? '';
    await expectSound();
    await resize(390);
    await expectSound();
    await resize(1280);
    await page.reload();
    await page.getByRole('heading', { name: /^First steps/ }).waitFor();
    expect(await page.locator('#api-key').count()).toBe(0);

    // The first page, and from it every entry of the sidebar: nothing is there yet.
    await page.goto(`${origin}${ROUTES.includes('/') ? '/' : screens[0]}`);
    for (const { path, name } of SCREENS.filter((screen) => screens.includes(screen.path))) {
      await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name, exact: true }).click();
      await page.waitForURL((url) => url.pathname === path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await expectSound();
    }

    const [organization] = await query<{ id: string }>(
      app.worker,
      sql`select m.org_id as id from members m join users u on u.id = m.user_id where u.email = ${email}`,
    );
    const content = await fillWithHostileContent(app, { organizationId: organization?.id ?? '', token });
    const cookies = await page.context().cookies();
    await close();
    const session = cookies.find(({ name }) => name === 'session')?.value ?? '';
    const paths = [...screens, ...details.map(([, pathOf]) => pathOf(content))];

    // All faults at once: a text that breaks one page often breaks others.
    const faults: string[] = [];
    const narrow = await openConsole(browser, origin, { token: session, width: 390, colorScheme: 'dark' });
    for (const path of paths) {
      await narrow.visit(path).catch((error: Error) => faults.push(`390 ${path}: ${error.message}`));
      for (const fault of await findHiddenControls(narrow.page)) faults.push(`390 ${path}: ${fault}`);
    }
    await narrow.resize(1280);
    for (const path of paths) {
      await narrow.page.goto(`${origin}${path}`);
      for (const fault of await findHiddenControls(narrow.page)) faults.push(`1280 ${path}: ${fault}`);
    }
    expect([...faults, ...narrow.complaints]).toEqual([]);
    await narrow.page.goto(`${origin}/approvals/${content.pendingDraft}`);
    for (const decision of [/^Approve/, /^Reject/])
      expect(await narrow.page.getByRole('button', { name: decision }).count()).toBeGreaterThan(0);
    await narrow.close();
  });
});

/** What people press or fill in, but that lies outside the window or under something else, and a page that scrolls sideways. */
function findHiddenControls(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const found: string[] = [];
    if (document.documentElement.scrollWidth > innerWidth) {
      const wide = [...document.body.querySelectorAll('*')].filter(
        (element) => element.getBoundingClientRect().right > innerWidth + 1,
      );
      found.push(`scrolls sideways: ${wide.slice(0, 4).map((element) => element.outerHTML.slice(0, 100))}`);
    }
    const controls = 'main :is(button, a.button, input:not([type="hidden"]), select, textarea)';
    for (const control of document.querySelectorAll<HTMLElement>(controls)) {
      if (!control.checkVisibility({ visibilityProperty: true })) continue;
      control.scrollIntoView({ block: 'center', inline: 'nearest' });
      const { left, right, top, bottom, width } = control.getBoundingClientRect();
      if (width === 0) continue;
      const name = control.outerHTML.slice(0, 120);
      const inScroller = control.closest('.table, .scroll, pre') !== null;
      if (!inScroller && (left < -1 || right > innerWidth + 1)) found.push(`outside: ${name}`);
      const at = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
      if (!inScroller && at && !control.contains(at) && !at.contains(control)) found.push(`covered: ${name}`);
    }
    return found;
  });
}
