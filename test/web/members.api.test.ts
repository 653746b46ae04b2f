import { expect, test } from '@jest/globals';
import { createAccountQuickly } from '../support/accounts.ts';
import { createPageClient } from '../support/page-client.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestUser } from '../support/sessions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

async function arrange() {
  const account = await createAccountQuickly(app);
  const browser = createPageClient(app);
  browser.cookies.set('session', account.token);
  return { ...account, browser };
}

test('demoting or removing yourself needs a confirmation, and the only owner reads what to do', async () => {
  const { browser, userId, organizationId, token } = await arrange();
  expect((await browser.open('/members')).body).toContain('You are the only owner.');
  await createTestUser(app.worker, { organizationId, role: 'owner' });
  await browser.open('/members');
  const demoted = await browser.submit('/members/role', { user_id: userId, role: 'viewer' });
  expect(demoted.statusCode).toBe(400);
  expect(demoted.body).toContain('because you would change your own role');
  const left = await browser.submit('/members/remove', { user_id: userId });
  expect(left.statusCode).toBe(400);
  const role = async () => (await app.call('/user/me/organizations', { token })).json().data[0]?.role;
  expect(await role()).toBe('owner');
  await browser.open('/members');
  await browser.submit('/members/remove', { user_id: userId, confirm_self: 'on' });
  expect(browser.path).toBe('/account?notice=organization-left');
  expect(await role()).toBeUndefined();
});

test('a refused invitation keeps the address, and says at its field what is wrong', async () => {
  const { browser } = await arrange();
  await browser.open('/members');
  const refused = await browser.submit('/members/invitations', { email: 'nonsense', role: 'viewer' });
  expect(refused.statusCode).toBe(400);
  expect(refused.body).toContain('value="nonsense"');
  expect(refused.body).toContain('id="members-invitations-field-email-error"');
});

test('the audit log says who changed a policy, from what to what, and is filtered', async () => {
  const { browser, userId } = await arrange();
  await browser.open('/settings/policies');
  await browser.submit('/settings/policies', { session_max_age_hours: '12', allowed_cidrs: '' });
  const log = await browser.open(`/audit-log?action=policies.updated&actor_id=${userId}&from=&to=`);
  expect(log.body).toContain('Ada Lovelace');
  expect(log.body).toMatch(/Hours until the next sign-in: <del dir="auto">none<\/del> → <ins dir="auto">12</);
  expect((await browser.open('/audit-log?action=domain.deleted')).body).toContain('No such change');
  expect((await browser.open('/audit-log?from=2026-13-99')).statusCode).toBe(400);
});

test('a person creates another organization, and is led to it', async () => {
  const { browser } = await arrange();
  await browser.open('/organizations');
  await browser.submit('/organizations', { name: 'Difference Engines' });
  expect(browser.path).toMatch(/^\/overview\?org=org_\w+&notice=organization-created$/);
  const wrong = await browser
    .open('/organizations')
    .then(() => browser.submit('/organizations', { name: '' }));
  expect(wrong.body).toContain('Fill this in.');
});
