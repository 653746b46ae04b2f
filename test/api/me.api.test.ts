import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '../../platform/ids.ts';
import { billingConfig } from '../support/billing-config.ts';
import { eventually } from '../support/eventually.ts';
import { impersonate } from '../support/impersonation.ts';
import { administerLimits, setLimit, type TestLimits } from '../support/limits.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { setPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp();
const capped = useTestApp({ config: { ...billingConfig(), SHARED_DOMAIN_DAILY_CAP: '3' } });
let limits: TestLimits;
beforeAll(async () => {
  limits = administerLimits({ database: app.worker });
});

const me = async (token: string, on = app) => {
  const response = await on.call('/me', { token });
  return { status: response.statusCode, ...response.json() };
};
const MIDNIGHT = /^\d{4}-\d{2}-\d{2}T00:00:00\.000Z$/;
const NEW_MONTH = /^\d{4}-\d{2}-01T00:00:00\.000Z$/;

const tomorrow = () => new Date((Math.floor(Date.now() / 86_400_000) + 1) * 86_400_000).toISOString();

describe('GET /me', () => {
  test('describes a key: its binding, permissions, expiry and environment', async () => {
    const organization = await createOrganization(app.worker);
    const { organizationId, productionEnvironmentId, sandboxEnvironmentId } = organization;
    const inbox = await createInbox(app.worker, organization);
    const expiresAt = new Date(Date.now() + 3_600_000);
    const ofInbox = await createKey(app.worker, {
      organizationId,
      permissions: [],
      environmentId: productionEnvironmentId,
      inboxId: inbox.id,
      expiresAt,
    });
    expect(await me(ofInbox.token)).toEqual({
      status: 200,
      object: 'credential',
      kind: 'api_key',
      id: ofInbox.keyId,
      user_id: null,
      org_id: organizationId,
      permissions: [],
      binding: 'inbox',
      env_id: productionEnvironmentId,
      is_sandbox: false,
      inbox_id: inbox.id,
      suspended: null,
      expires_at: expiresAt.toISOString(),
      rate_limit: { requests_per_second: 100_000, burst: 100_000 },
      sends: {
        today: { remaining: null, shared_domain: null, per_inbox: null, resets_at: tomorrow() },
        this_month: {
          limit: null,
          kind: 'soft',
          remaining: null,
          resets_at: expect.stringMatching(NEW_MONTH),
        },
      },
    });
    expect(await me(organization.token)).toMatchObject({
      binding: 'organization',
      inbox_id: null,
      expires_at: null,
      permissions: expect.arrayContaining(['messages:send', 'keys:manage']),
    });
    const ofSandbox = await createKey(app.worker, { organizationId, environmentId: sandboxEnvironmentId });
    expect(await me(ofSandbox.token)).toMatchObject({
      binding: 'environment',
      env_id: sandboxEnvironmentId,
      is_sandbox: true,
    });
  });

  test('describes a session, with and without an organization, and an impersonation', async () => {
    const { organizationId, ownerId } = await createOrganization(app.worker);
    const session = await createTestSession(app.worker, ownerId);
    expect(await me(session.token)).toMatchObject({
      status: 200,
      kind: 'session',
      id: session.id,
      user_id: ownerId,
      org_id: organizationId,
      permissions: expect.arrayContaining(['messages:approve']),
      expires_at: expect.any(String),
    });

    const stranger = await createTestUser(app.worker);
    const alone = await createTestSession(app.worker, stranger);
    const withoutOrganization = {
      status: 200,
      kind: 'session',
      org_id: null,
      permissions: [],
      env_id: null,
      sends: null,
      expires_at: expect.any(String),
    };
    expect(await me(alone.token)).toMatchObject({ ...withoutOrganization, id: alone.id, user_id: stranger });
    const enrolling = await createTestSession(app.worker, ownerId, { kind: 'enroll' });
    expect(await me(enrolling.token)).toMatchObject({ ...withoutOrganization, id: enrolling.id });
    const second = await createOrganization(app.worker);
    await app.worker.db
      .insertInto('members')
      .values({ org_id: second.organizationId, user_id: ownerId, role: 'viewer' })
      .execute();
    expect(await me(session.token)).toMatchObject(withoutOrganization);
    const named = await app.call('/me', {
      token: session.token,
      headers: { 'x-org-id': second.organizationId },
    });
    expect(named.json()).toMatchObject({ org_id: second.organizationId });
    const foreign = await app.call('/me', {
      token: session.token,
      headers: { 'x-org-id': newId('organization') },
    });
    expectProblem(foreign, 'not_found');

    const impersonation = await impersonate(app, organizationId);
    expect(await me(impersonation.token)).toMatchObject({
      status: 200,
      kind: 'impersonation',
      id: impersonation.id,
      user_id: impersonation.staff.userId,
      org_id: organizationId,
    });
  });

  test('needs a valid credential', async () => {
    expectProblem(await app.call('/me'), 'unauthenticated');
    expectProblem(await app.call('/me', { token: 'ask_live_unknown' }), 'unauthenticated');
    const { organizationId } = await createOrganization(app.worker);
    const expired = await createKey(app.worker, { organizationId, expiresAt: new Date(0) });
    expectProblem(await app.call('/me', { token: expired.token }), 'unauthenticated');
  });

  test('works while suspended, and says why', async () => {
    const { organizationId, token } = await createOrganization(app.worker);
    await app.worker.db
      .updateTable('organizations')
      .set({ status: 'suspended' })
      .where('id', '=', organizationId)
      .execute();
    expect(await me(token)).toMatchObject({ status: 200, suspended: 'organization_suspended' });
  });

  test('works without api_calls, and is not counted', async () => {
    const { organizationId, token } = await createOrganization(app.worker);
    await setLimit(limits, organizationId, { resource: 'api_calls', limit: 1 });
    await app.call('/inboxes', { token });
    await eventually(async () =>
      expectProblem(await app.call('/inboxes', { token }), 'usage_limit_exceeded'),
    );
    const calls = async () =>
      (await app.call('/org/usage', { token })).json().counters.api_calls.current as number;
    for (let count = 0; count < 5; count += 1) expect((await me(token)).status).toBe(200);
    // The calls that ask for the count are counted themselves, and written a second later.
    await eventually(async () => expect(await calls()).toBeGreaterThanOrEqual(2));
    const before = await calls();
    for (let count = 0; count < 20; count += 1) await me(token);
    expect((await calls()) - before).toBeLessThan(20);
  });

  test('counts down the sends of the month and of the day, and a daily cap refuses until resets_at', async () => {
    const organization = await createOrganization(app.worker);
    const { organizationId, productionEnvironmentId, token } = organization;
    const inbox = await createInbox(app.worker, organization);
    const { token: ofInbox } = await createKey(app.worker, {
      organizationId,
      environmentId: productionEnvironmentId,
      inboxId: inbox.id,
    });
    await setLimit(limits, organizationId, { resource: 'messages_sent', limit: 10 });
    const send = () =>
      app.call(`/inboxes/${inbox.id}/messages`, {
        method: 'POST',
        token,
        body: { to: ['ada@people.example'], subject: 'One', text_body: 'x' },
      });
    expect((await send()).statusCode).toBe(201);
    await setPolicies(app.worker, organizationId, { daily_send_cap_per_inbox: 3 });
    const resetsAt = { resets_at: expect.stringMatching(MIDNIGHT) };
    expect((await me(ofInbox)).sends).toMatchObject({
      today: { remaining: 2, per_inbox: { limit: 3, remaining: 2 }, ...resetsAt },
      this_month: { limit: 10, kind: 'hard', remaining: 9, resets_at: expect.stringMatching(NEW_MONTH) },
    });
    expect((await me(token)).sends.today).toMatchObject({
      remaining: null,
      per_inbox: { limit: 3, remaining: null },
    });
    for (let count = 0; count < 2; count += 1) expect((await send()).statusCode).toBe(201);
    expect((await me(ofInbox)).sends).toMatchObject({
      today: { remaining: 0, per_inbox: { limit: 3, remaining: 0 } },
      this_month: { remaining: 7 },
    });
    expect(expectProblem(await send(), 'message_rejected')).toMatchObject({
      policy: 'daily_send_cap_per_inbox',
      resets_at: tomorrow(),
    });
  });

  test('says how many recipients are left on the shared domain, and none are for a sandbox', async () => {
    const organization = await createOrganization(capped.worker);
    const inbox = await createInbox(capped.worker, organization);
    const { token, organizationId, sandboxEnvironmentId } = organization;
    expect((await me(token, capped)).sends.today).toMatchObject({
      remaining: 3,
      shared_domain: { limit: 3, remaining: 3 },
    });
    const send = (...to: string[]) =>
      capped.call(`/inboxes/${inbox.id}/messages`, {
        method: 'POST',
        token,
        body: { to, subject: 'One', text_body: 'x' },
      });
    expect((await send('ada@people.example', 'eve@people.example')).statusCode).toBe(201);
    expect((await me(token, capped)).sends.today).toMatchObject({
      remaining: 1,
      shared_domain: { limit: 3, remaining: 1 },
    });
    expect(
      expectProblem(await send('ada@people.example', 'eve@people.example'), 'message_rejected'),
    ).toMatchObject({ rejection_reason: 'rate_limited', resets_at: tomorrow() });
    const sandbox = await createKey(capped.worker, { organizationId, environmentId: sandboxEnvironmentId });
    expect((await me(sandbox.token, capped)).sends.today).toMatchObject({
      remaining: null,
      shared_domain: null,
      resets_at: tomorrow(),
    });
    // The number doubles after a day of sending, as the refusal says.
    await capped.worker.db
      .updateTable('shared_domain_caps')
      .set({ day: '2026-01-01' })
      .where('org_id', '=', organizationId)
      .execute();
    expect((await me(token, capped)).sends.today.shared_domain).toEqual({ limit: 6, remaining: 6 });
  });
});
