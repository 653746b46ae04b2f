import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { newId } from '../../platform/ids.ts';
import { startBillingApp } from '../billing/billing-app.ts';
import { createAccountQuickly } from '../support/accounts.ts';
import { eventually } from '../support/eventually.ts';
import { findUntried, tryPages } from '../support/form-trials.ts';
import { createOrganization } from '../support/organizations.ts';
import { arrangeAmbiguousSend } from '../support/outbound-mail.ts';
import { createPageClient, type PageClient } from '../support/page-client.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';
import { createStaff } from '../support/staff.ts';
import { createFailedEmail, createTestEndpoint } from '../support/staff-operations.ts';
import type { TestApp } from '../support/test-app.ts';
import { useResource } from '../support/use-resource.ts';

/** Pages whose forms are tried. */
const PUBLIC = [
  '/login',
  '/login/sso',
  '/signup',
  '/forgot-password',
  '/recover',
  '/reset-password?token=unknown',
  '/verify-email?token=unknown',
];
const SIGNED_IN = [
  '/account',
  '/organizations',
  '/domains',
  '/inboxes/new',
  '/keys/new',
  '/members',
  '/reputation/lists',
  '/reputation/suppressions',
  '/settings',
  '/settings/environments',
  '/settings/retention',
  '/settings/sending',
  '/settings/single-sign-on',
  '/usage',
  '/webhooks/new',
];

async function signIn(app: TestApp, userId: string): Promise<PageClient> {
  const browser = createPageClient(app);
  const { token } = await createTestSession(app.worker, userId, { factors: ['totp'] });
  browser.cookies.set('session', token);
  return browser;
}

describe('a text that is too long stands with its error at its field, and the other values stay', () => {
  const app = useTestApp();

  test('in forms of accounts', async () => {
    expect((await tryPages(createPageClient(app), PUBLIC)).faults).toEqual([]);
  });

  test('in forms of the console', async () => {
    const { ownerId } = await createOrganization(app.worker);
    expect((await tryPages(await signIn(app, ownerId), SIGNED_IN)).faults).toEqual([]);
  });
});

/** Staff, and one of everything that they can change. */
async function arrangeStaff(app: TestApp) {
  const staff = await createStaff(app);
  await createStaff(app, { role: 'support' });
  const note = 'Ticket 4711';
  const organization = await createOrganization(app.worker);
  const { organizationId, ownerId, token, keyId } = organization;
  const call = async (path: string, body: object, by = staff.token) => {
    const response = await app.call(path, { method: 'POST', token: by, body });
    if (response.statusCode >= 300) throw new Error(`${path}: ${response.body}`);
    return response;
  };
  const endpointId = await createTestEndpoint(app, token);
  await call(`/webhooks/endpoints/${endpointId}/test`, {}, token);
  await call('/admin/notifications', {
    title: 'T',
    text: 'T',
    audience: 'organizations',
    org_ids: [organizationId],
    delivery: 'shown',
    note,
  });
  await call(`/admin/orgs/${organizationId}/impersonate`, { reason: note });
  await call(`/admin/orgs/${organizationId}/environments/${organization.sandboxEnvironmentId}/suspend`, {
    reason: 'abuse',
    note,
  });
  await call(`/admin/orgs/${organizationId}/limit-override`, {
    counter: 'inboxes',
    limit: 9,
    kind: 'hard',
    note,
  });
  await createFailedEmail(app.worker, { organizationId, ownerId });
  await createFailedEmail(app.worker, { organizationId, ownerId });
  const account = await createAccountQuickly(app);
  await call('/org/upgrade-requests', { tier: 'business', note }, account.token);
  await call(`/admin/users/${account.userId}/suspend`, { note });
  await query(app.worker, sql`update api_keys set created_by_user_id = ${ownerId} where id = ${keyId}`);
  await query(
    app.worker,
    sql`insert into mfa_enrollments (id, user_id, type, name, confirmed_at, created_at)
    values (${newId('mfaEnrollment')}, ${ownerId}, 'totp', 'Phone', now(), now())`,
  );
  await query(
    app.worker,
    sql`insert into retention_policies (org_id, retention_days, applied_days, applied_since, steps, changed_at, created_at)
    values (${organizationId}, 30, 30, now(), '[]', now(), now())`,
  );
  await query(
    app.worker,
    sql`insert into outbox (org_id, command, priority, available_at, created_at, dead_at, last_error)
    values (${organizationId}, ${JSON.stringify({ signal: { workflowId: `send/${organizationId}` } })}::jsonb, 3, now(),
      now(), '2020-01-01', 'no namespace')`,
  );
  const runs = [await arrangeAmbiguousSend(app.worker), `send/${newId('message')}`];
  for (const [index, workflowId] of runs.entries())
    app.temporalRuns.add({
      workflowId,
      type: 'sendMessage',
      searchAttributes: { OrgId: organizationId, Stage: index === 0 ? 'needs_attention' : 'deferred' },
    });
  const path = `/admin/organizations/${organizationId}`;
  return {
    staff,
    organizationId,
    paths: [
      '/admin/toggles',
      '/admin/announcements',
      `/admin/emails?organization_id=${organizationId}`,
      '/admin/health',
      '/admin/requests',
      path,
      `${path}/operations`,
      `${path}/impersonations`,
      `/admin/people/${ownerId}`,
      `/admin/people/${account.userId}`,
      `/admin/work?organization_id=${organizationId}`,
      ...runs.map((workflow_id) => `/admin/work/run?${new URLSearchParams({ workflow_id })}`),
    ],
  };
}

describe('so do the forms of the staff console', () => {
  const paused = { id: 'reconcile', isPaused: true, note: null, lastRunAt: null, nextRunAt: null };
  const app = useTestApp({ schedules: { list: async () => [paused], find: async () => paused } });

  test('which are all tried', async () => {
    const { staff, organizationId, paths } = await arrangeStaff(app);
    const browser = createPageClient(app);
    browser.cookies.set('session', staff.token);
    const { faults, actions } = await tryPages(browser, paths);
    await query(app.worker, sql`delete from outbox where org_id = ${organizationId}`);
    expect(faults).toEqual([]);
    // Other tests add and remove staff meanwhile, so a member may be gone when its form is sent.
    await eventually(async () => {
      const ofStaff = await tryPages(browser, ['/admin/staff']);
      expect(ofStaff.faults).toEqual([]);
      actions.push(...ofStaff.actions);
    });
    // The billing page of the test below has one that is overdue.
    expect(findUntried(app, /^\/admin\//, actions)).toEqual(['/admin/organizations/:id/extend-grace']);
  });
});

/** Not its operations of the API. */
const PAGES_OF_BILLING = /^\/billing\/(?!checkout|portal|subscription|webhook)/;

describe('so do the forms of billing', () => {
  const app = useResource(startBillingApp, (running) => running.stop());

  test('before and after a subscription', async () => {
    const free = await app.createFree();
    const paying = await app.createPaying();
    const first = await tryPages(await signIn(app, free.ownerId), ['/billing']);
    const second = await tryPages(await signIn(app, paying.ownerId), ['/billing']);
    expect([...first.faults, ...second.faults]).toEqual([]);
    expect(findUntried(app, PAGES_OF_BILLING, [...first.actions, ...second.actions])).toEqual([]);
    app.setCard(paying.subscription, 'declined');
    await app.advanceDays(paying, 31);
    const { userId } = await createStaff(app);
    const organization = `/admin/organizations/${paying.organizationId}`;
    const third = await tryPages(await signIn(app, userId), [organization]);
    expect(third).toEqual({ faults: [], actions: expect.arrayContaining([`${organization}/extend-grace`]) });
  });
});
