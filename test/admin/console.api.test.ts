import { describe, expect, test } from '@jest/globals';
import type { StaffRole } from '../../domain/staff/staff-scope.ts';
import { createAccountQuickly } from '../support/accounts.ts';
import { createPageClient } from '../support/page-client.ts';
import { useTestApp } from '../support/resources.ts';
import { createStaff } from '../support/staff.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

/** A browser of a signed-in staff member. */
async function openConsole(role: StaffRole = 'admin') {
  const staff = await createStaff(app, { role });
  const browser = createPageClient(app);
  browser.cookies.set('session', staff.token);
  return { ...staff, browser };
}

describe('the console', () => {
  test('leads to the sign-in, and shows nothing to others', async () => {
    const browser = createPageClient(app);
    await browser.open('/admin/log');
    expect(browser.path).toBe('/login?next=%2Fadmin%2Flog');
    const { token } = await createAccountQuickly(app);
    browser.cookies.set('session', token);
    const refused = await browser.open('/admin/log');
    expect(refused.statusCode).toBe(403);
    expect(refused.body).not.toContain('Changes by staff');
  });

  test('shows the log', async () => {
    const { browser } = await openConsole('support');
    const page = await browser.open('/admin/log?action=organization.never');
    expect(page.statusCode).toBe(200);
    expect(page.body).toContain('No changes.');
    expect(page.body).toContain('aria-current="page">Log');
  });
});
