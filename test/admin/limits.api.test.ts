import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import type { HeldWorkService } from '../../domain/administration/held-work.service.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { createStaff, type TestStaff } from '../support/staff.ts';
import { arrangeSuspensions } from '../support/suspensions.ts';
import { arrangeDeliveries, httpAnswer } from '../support/webhook-deliveries.ts';

const app = useTestApp();
let admin: TestStaff;
let support: TestStaff;
let heldWork: HeldWorkService;
beforeAll(async () => {
  admin = await createStaff(app);
  support = await createStaff(app, { role: 'support' });
  ({ heldWork } = arrangeSuspensions(app.worker));
});

const send = (method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown, token = admin.token) =>
  app.call(path, { method, token, body });
const setTier = (organizationId: string, tier: string) =>
  send('PATCH', `/admin/orgs/${organizationId}/tier`, { tier, note: 'Contract' });
const override = (organizationId: string, body: object) =>
  send('POST', `/admin/orgs/${organizationId}/limit-override`, { note: 'Trial', ...body });
const settleStarts = (organizationId: string) =>
  app.commands.filter(
    ({ start }) =>
      start?.workflowType === 'settleHeldWork' && start.searchAttributes.OrgId === organizationId,
  );
const mailOf = async (organizationId: string) =>
  (
    await query<{ template: string }>(
      app.worker,
      sql`select template from notifications where org_id = ${organizationId} order by id`,
    )
  ).map(({ template }) => template);

describe('the tier', () => {
  test('changes at once, and starts the release of what the old limits held', async () => {
    const organization = await createOrganization(app.worker);
    const { organizationId, token } = organization;
    const response = await setTier(organizationId, 'free');
    expect(response.json()).toMatchObject({ id: organizationId, tier: 'free', limits: { tier: 'free' } });
    for (let count = 0; count < 5; count += 1) await createInbox(app.worker, organization);
    const createInboxByApi = () => app.call('/inboxes', { method: 'POST', token, body: {} });
    expectProblem(await createInboxByApi(), 'plan_limit_reached');
    await setTier(organizationId, 'developer');
    expect((await createInboxByApi()).statusCode).toBe(201);
    expect(settleStarts(organizationId)).toHaveLength(2);
    // The same tier again changes nothing.
    await setTier(organizationId, 'developer');
    expect(settleStarts(organizationId)).toHaveLength(2);
    const log = (await app.call('/org/audit-log?action=organization.tier_changed', { token })).json().data;
    expect(log).toMatchObject([
      { details: { from: 'free', to: 'developer' }, reason: 'Contract', actor: { kind: 'staff' } },
      { details: { from: 'enterprise', to: 'free' } },
    ]);
  });

  test('is not changed by bad input, by support, or of an unknown organization', async () => {
    const { organizationId } = await createOrganization(app.worker);
    const path = `/admin/orgs/${organizationId}/tier`;
    for (const body of [{}, { tier: 'gold', note: 'x' }, { tier: 'free' }, { tier: 'free', note: '' }])
      expectProblem(await send('PATCH', path, body), 'validation_error');
    expectProblem(await send('PATCH', path, { tier: 'free', note: 'x' }, support.token), 'permission_denied');
    expectProblem(await setTier('org_none', 'free'), 'not_found');
  });

  test('releases deliveries that waited for the old limit', async () => {
    const arranged = await arrangeDeliveries(app.worker, 3);
    const { organizationId } = arranged.organization;
    await override(organizationId, { counter: 'webhook_deliveries', limit: 0, kind: 'hard' });
    const worker = arranged.worker(async () => httpAnswer(200));
    for (const id of arranged.deliveryIds) await worker.attempt(id, true, 1);
    expect((await arranged.deliveries()).map(({ heldFor }) => heldFor)).toEqual(Array(3).fill('usage_limit'));
    expect((await heldWork.release(organizationId, () => undefined)).deliveries).toBe(0);
    const path = `/admin/orgs/${organizationId}/limit-override/webhook_deliveries?note=Over`;
    expect((await send('DELETE', path)).statusCode).toBe(204);
    expect((await heldWork.release(organizationId, () => undefined)).deliveries).toBe(3);
    expect((await arranged.deliveries()).map(({ status }) => status)).toEqual(Array(3).fill('pending'));
  });
});

describe('an override', () => {
  test('replaces the limit of the tier until it expires, and stays listed', async () => {
    const { organizationId, token } = await createOrganization(app.worker);
    await setTier(organizationId, 'free');
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const set = await override(organizationId, { counter: 'messages_sent', limit: 7, expires_at: expiresAt });
    expect(set.statusCode).toBe(200);
    expect(set.json()).toMatchObject({
      counter: 'messages_sent',
      limit: 7,
      kind: 'hard',
      expires_at: expiresAt,
      expired: false,
      note: 'Trial',
      created_by: admin.userId,
    });
    await override(organizationId, { counter: 'inboxes', limit: null, kind: 'soft', expires_at: null });
    const limitOf = async () =>
      (await app.call('/org/limits', { token })).json().counters.messages_sent.limit;
    expect(await limitOf()).toBe(7);
    await query(
      app.worker,
      sql`update limit_overrides set expires_at = now() - interval '1 second'
      where org_id = ${organizationId} and resource = 'messages_sent' returning org_id`,
    );
    expect(await limitOf()).toBe(3_000);
    const list = await app.call(`/admin/orgs/${organizationId}/limit-overrides`, { token: support.token });
    expect(list.json().data).toMatchObject([
      { counter: 'inboxes', limit: null, kind: 'soft', expired: false },
      { counter: 'messages_sent', expired: true },
    ]);
    // It can be set again.
    await override(organizationId, { counter: 'messages_sent', limit: 9 });
    expect(await limitOf()).toBe(9);
  });

  test('is removed once, with entries in both logs', async () => {
    const { organizationId, token } = await createOrganization(app.worker);
    await override(organizationId, { counter: 'api_calls', limit: 5, kind: 'hard' });
    const path = `/admin/orgs/${organizationId}/limit-override/api_calls?note=Over`;
    const removals = await Promise.all([1, 2].map(() => send('DELETE', path)));
    expect(removals.map(({ statusCode }) => statusCode).sort()).toEqual([204, 404]);
    const log = (await app.call('/org/audit-log', { token })).json().data;
    expect(log).toMatchObject([
      { action: 'limit_override.removed', reason: 'Over' },
      { action: 'limit_override.set', details: { counter: 'api_calls', limit: 5 } },
    ]);
  });

  test('is not set by bad input or by support', async () => {
    const { organizationId } = await createOrganization(app.worker);
    for (const body of [
      { counter: 'coffee', limit: 1 },
      { counter: 'inboxes' },
      { counter: 'inboxes', limit: -1 },
      { counter: 'inboxes', limit: 1.5 },
      { counter: 'inboxes', limit: 1, kind: 'firm' },
      { counter: 'inboxes', limit: 1, expires_at: 'tomorrow' },
      { counter: 'inboxes', limit: 1, expires_at: '2020-01-01T00:00:00.000Z' },
      { counter: 'inboxes', limit: 1, note: undefined },
    ])
      expectProblem(await override(organizationId, body), 'validation_error');
    const path = `/admin/orgs/${organizationId}/limit-override`;
    const body = { counter: 'inboxes', limit: 1, note: 'x' };
    expectProblem(await send('POST', path, body, support.token), 'permission_denied');
    expectProblem(
      await send('DELETE', `${path}/inboxes?note=x`, undefined, support.token),
      'permission_denied',
    );
    expectProblem(await send('DELETE', `${path}/coffee?note=x`), 'validation_error');
    expectProblem(await send('DELETE', `${path}/inboxes`), 'validation_error');
    expectProblem(await override('org_none', { counter: 'inboxes', limit: 1 }), 'not_found');
    const list = await app.call(`/admin/orgs/${organizationId}/limit-overrides`, { token: admin.token });
    expect(list.json().data).toEqual([]);
  });
});

describe('upgrade requests', () => {
  async function arrange() {
    const { organizationId, ownerId } = await createOrganization(app.worker);
    await setTier(organizationId, 'free');
    const { token } = await createTestSession(app.worker, ownerId);
    const ask = (body: object = { tier: 'business', note: 'We grow.' }) =>
      app.call('/org/upgrade-requests', { method: 'POST', token, body });
    const decide = (id: string, decision: 'approve' | 'reject', by = admin.token) =>
      send('POST', `/admin/upgrade-requests/${id}/${decision}`, { note: 'Welcome' }, by);
    const tier = async () => (await app.call('/org', { token })).json().tier;
    return { organizationId, ownerId, token, ask, decide, tier };
  }

  test('are not approved once who made them may no longer decide about the tier', async () => {
    const { organizationId, ownerId, ask, decide, tier } = await arrange();
    const { id } = (await ask()).json();
    await query(
      app.worker,
      sql`update members set role = 'admin' where org_id = ${organizationId} and user_id = ${ownerId} returning user_id`,
    );
    const refused = expectProblem(await decide(id, 'approve'), 'conflict');
    expect(refused.requester_problem).toBe('permission_lost');
    expect(await mailOf(organizationId)).toEqual([]);
    const [row] = await query<{ tier: string }>(
      app.worker,
      sql`select tier from organizations where id = ${organizationId}`,
    );
    expect(row?.tier).toBe('free');
    expect((await decide(id, 'reject')).json()).toMatchObject({ status: 'rejected' });
    expect(await tier()).toBe('free');
  });

  test('are approved, which grants the tier and mails the owners', async () => {
    const { organizationId, ownerId, token, ask, decide, tier } = await arrange();
    const created = await ask();
    expect(created.statusCode).toBe(201);
    expect(created.json()).toMatchObject({
      org_id: organizationId,
      tier: 'business',
      current_tier: 'free',
      status: 'open',
      requested_by: { kind: 'user', id: ownerId },
      decided_at: null,
    });
    const { id } = created.json();
    const path = `/admin/upgrade-requests?status=open&org_id=${organizationId}`;
    const open = (await app.call(path, { token: support.token })).json();
    expect(open.data).toEqual([created.json()]);
    const approved = await decide(id, 'approve');
    expect(approved.json()).toMatchObject({ status: 'approved', decision_note: 'Welcome' });
    expect(await tier()).toBe('business');
    expect(await mailOf(organizationId)).toEqual(['upgrade-approved']);
    expectProblem(await decide(id, 'reject'), 'conflict');
    const { checkout_url: checkoutUrl, ...request } = approved.json();
    expect(checkoutUrl).toBeNull();
    expect((await app.call('/org/upgrade-requests', { token })).json().data).toEqual([request]);
    expect((await app.call(path, { token: support.token })).json().data).toEqual([]);
    const tiers = (await app.call('/org/audit-log?action=organization.tier_changed', { token })).json().data;
    expect(tiers[0]).toMatchObject({
      details: { from: 'free', to: 'business' },
      reason: 'Welcome',
      actor: { kind: 'staff' },
    });
    const log = (await app.call('/org/audit-log?resource_type=upgrade_request', { token })).json().data;
    expect(log).toMatchObject([
      { action: 'upgrade_request.approved', actor: { kind: 'staff' }, reason: 'Welcome' },
      { action: 'upgrade_request.created', actor: { kind: 'user' } },
    ]);
  });

  test('are rejected, which leaves the tier and lets the organization ask again', async () => {
    const { organizationId, ask, decide, tier } = await arrange();
    const { id } = (await ask()).json();
    expectProblem(await ask(), 'already_exists');
    expect((await decide(id, 'reject')).json()).toMatchObject({ status: 'rejected' });
    expect(await tier()).toBe('free');
    expect(await mailOf(organizationId)).toEqual(['upgrade-rejected']);
    expect((await ask()).statusCode).toBe(201);
  });

  test('are not approved if the organization has been given another tier meanwhile', async () => {
    const { organizationId, ask, decide, tier } = await arrange();
    const { id } = (await ask({ tier: 'developer', note: 'We grow.' })).json();
    await setTier(organizationId, 'enterprise');
    expectProblem(await decide(id, 'approve'), 'conflict');
    expect(await tier()).toBe('enterprise');
    expect((await decide(id, 'reject')).json()).toMatchObject({ status: 'rejected' });
    const later = (await ask({ tier: 'business', note: 'We shrink.' })).json();
    await setTier(organizationId, 'business');
    expect((await decide(later.id, 'approve')).statusCode).toBe(200);
  });

  test('have one decision and one open request at a time', async () => {
    const { organizationId, ask, decide } = await arrange();
    const asked = await Promise.all([ask(), ask(), ask()]);
    expect(asked.map(({ statusCode }) => statusCode).sort()).toEqual([201, 409, 409]);
    const { id } = asked.find(({ statusCode }) => statusCode === 201)?.json() ?? {};
    const decided = await Promise.all([decide(id, 'approve'), decide(id, 'reject')]);
    expect(decided.map(({ statusCode }) => statusCode).sort()).toEqual([200, 409]);
    expect(await mailOf(organizationId)).toHaveLength(1);
  });

  test('are made by owners, about another tier, and decided by admins', async () => {
    const { organizationId, ask, decide } = await arrange();
    expectProblem(await ask({ tier: 'free', note: 'x' }), 'conflict');
    for (const body of [{ tier: 'gold', note: 'x' }, { tier: 'business' }, { tier: 'business', note: ' ' }])
      expectProblem(await ask(body), 'validation_error');
    const { id } = (await ask()).json();
    const memberId = (await createTestMember(organizationId, 'admin')).token;
    for (const method of ['GET', 'POST'] as const) {
      const body = method === 'POST' ? { body: { tier: 'business', note: 'x' } } : {};
      const response = await app.call('/org/upgrade-requests', { method, token: memberId, ...body });
      expectProblem(response, 'permission_denied');
    }
    expectProblem(await decide(id, 'approve', support.token), 'permission_denied');
    expectProblem(await decide('upg_none', 'approve'), 'not_found');
    const empty = await send('POST', `/admin/upgrade-requests/${id}/approve`, {});
    expectProblem(empty, 'validation_error');
  });

  async function createTestMember(organizationId: string, role: string) {
    const userId = await createTestUser(app.worker);
    await query(
      app.worker,
      sql`insert into members (org_id, user_id, role, created_at) values (${organizationId}, ${userId}, ${role}, now())
      returning org_id`,
    );
    return createTestSession(app.worker, userId);
  }
});
