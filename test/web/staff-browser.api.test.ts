import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { generate } from 'otplib';
import { addStaffMember } from '../../domain/bootstrap/add-staff-member.ts';
import { createSecretBox } from '../../platform/crypto.ts';
import { newId } from '../../platform/ids.ts';
import { newAddress } from '../support/accounts.ts';
import {
  expectFocus,
  browserObstacle as obstacle,
  openConsole,
  useBrowser,
} from '../support/console-browser.ts';
import { createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createStaff } from '../support/staff.ts';
import { createFailedEmail, createTestEndpoint } from '../support/staff-operations.ts';

(obstacle ? describe.skip : describe)('the console in Chromium', () => {
  const app = useTestApp();
  const browser = useBrowser();
  let origin: string;
  beforeAll(async () => {
    origin = await app.app.listen({ host: 'localhost', port: 0 });
  });

  test('leads a staff member from signing in through a suspension to its entry in the log', async () => {
    const { organizationId, token } = await createOrganization(app.worker);
    const { email, password, totpSecret } = await addStaffMember(app.worker, {
      email: newAddress(),
      role: 'admin',
      totp: { secretBox: createSecretBox(app.config.ENCRYPTION_KEY), issuer: 'test' },
    });
    const context = await browser.newContext();
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => message.type() === 'error' && problems.push(message.text()));

    await page.goto(`${origin}/admin`);
    await page.getByLabel('Email address').fill(email);
    await page.getByLabel('Password').fill(password ?? '');
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await page
      .getByLabel('Code of your authenticator app')
      .fill(await generate({ secret: totpSecret ?? '' }));
    await page.getByRole('button', { name: 'Continue' }).first().click();
    await page.getByRole('heading', { name: 'Overview' }).waitFor();

    // A run that gets stuck shows on the open page.
    app.temporalRuns.add({
      workflowId: `send/${newId('message')}`,
      type: 'sendMessage',
      searchAttributes: { OrgId: organizationId, Stage: 'needs_attention' },
    });
    await page.getByRole('link', { name: '1 need attention' }).click({ timeout: 15_000 });
    await page.getByRole('link', { name: 'sendMessage' }).waitFor();

    await page.getByRole('link', { name: 'Organizations' }).click();
    await page.getByLabel('Search').fill(organizationId);
    await page.getByRole('button', { name: 'Find' }).click();
    await page.getByRole('link', { name: 'Test' }).click();
    await page.locator('summary', { hasText: 'Suspend' }).click();
    const form = page.locator('form[action$="/suspend"]');
    await form.getByLabel('Kind').selectOption('policy');
    // The browser refuses a form without a reason.
    await form.getByRole('button', { name: 'Suspend' }).click();
    await form.getByLabel('Reason').fill('Reported twice');
    await form.getByRole('button', { name: 'Suspend' }).click();
    await page.getByRole('status').getByText('Done.').waitFor();
    await page.getByRole('row', { name: /organization\.suspended.*Reported twice/ }).waitFor();
    const refused = await app.call('/inboxes', { method: 'POST', token, body: {} });
    expect(refused.json()).toMatchObject({ code: 'organization_suspended' });

    // Every control has a name, and the page works with the keyboard alone.
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toContain('Skip to content');
    expect(problems).toEqual([]);
    const rows = await query(
      app.worker,
      sql`select reason from staff_audit_entries where organization_id = ${organizationId}`,
    );
    expect(rows).toEqual([{ reason: 'Reported twice' }]);

    // What the server refuses is corrected at its field, in the form that it belongs to.
    await page.locator('summary', { hasText: 'Override a limit' }).click();
    const override = page.locator('form[action$="/overrides"]');
    await override.getByLabel('Expires on').fill('2001-01-01');
    await override.getByLabel('Reason').fill('Contract');
    await override.getByRole('button', { name: 'Override' }).click();
    await page.getByText('Expires on (UTC) must be in the future.').waitFor();
    await expectFocus(override.getByLabel('Expires on'));
    expect(await override.getByLabel('Reason').inputValue()).toBe('Contract');
    await context.close();
  });

  test('fits a phone, is accessible, and shows times as those of the reader', async () => {
    const { organizationId, ownerId, token } = await createOrganization(app.worker);
    await createFailedEmail(app.worker, { organizationId, ownerId });
    await createTestEndpoint(app, token);
    const staff = await createStaff(app, { role: 'admin' });
    const workflowId = `send/${newId('message')}`;
    app.temporalRuns.add({
      workflowId,
      type: 'sendMessage',
      searchAttributes: { OrgId: organizationId, Stage: 'needs_attention' },
    });
    const { page, visit, close } = await openConsole(browser, origin, { token: staff.token, width: 390 });
    const organization = `/admin/organizations/${organizationId}`;
    const faults: string[] = [];
    for (const path of [
      '/admin',
      '/admin/organizations',
      organization,
      `${organization}/operations`,
      `${organization}/impersonations`,
      '/admin/people',
      `/admin/people/${ownerId}`,
      `/admin/people/${staff.userId}`,
      '/admin/work',
      `/admin/work/run?${new URLSearchParams({ workflow_id: workflowId })}`,
      '/admin/requests',
      '/admin/toggles',
      '/admin/announcements',
      '/admin/emails',
      '/admin/health',
      '/admin/staff',
      '/admin/log',
    ]) {
      await visit(path).catch((error: Error) => faults.push(`${path}: ${error.message}`));
      const bare = await page.evaluate(() => [
        ...[...document.querySelectorAll('table:not(.stack)')].map(() => 'a table that does not stack'),
        ...(/\d{2}:\d{2} UTC/.test(document.querySelector('main')?.textContent ?? '')
          ? ['a time in UTC']
          : []),
      ]);
      faults.push(...bare.map((fault) => `${path}: ${fault}`));
    }
    expect(faults).toEqual([]);
    await close();
  });
});
