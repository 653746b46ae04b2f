import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { applyUsageDeltas } from '../../domain/usage/apply-usage-deltas.ts';
import { newId } from '../../platform/ids.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { setPolicies } from '../support/policies.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestUser } from '../support/sessions.ts';
import { createStaff, type TestStaff } from '../support/staff.ts';

const app = useTestApp();
let admin: TestStaff;
let support: TestStaff;
beforeAll(async () => {
  admin = await createStaff(app);
  support = await createStaff(app, { role: 'support' });
});

const get = async (path: string) => {
  const response = await app.call(path, { token: support.token });
  expect(response.statusCode).toBe(200);
  return response.json();
};
const send = (method: 'POST' | 'PATCH' | 'DELETE', path: string, body: unknown, token = admin.token) =>
  app.call(path, { method, token, body });
const idsOf = ({ data }: { data: { id: string }[] }) => data.map(({ id }) => id);
const rename = (organizationId: string, name: string) =>
  query(
    app.worker,
    sql`update organizations set name = ${name}, slug = ${name.toLowerCase().replace(/\W+/g, '-')}
    where id = ${organizationId} returning id`,
  );

describe('the list of organizations', () => {
  test('has filters and pages', async () => {
    const since = new Date().toISOString();
    const made: TestOrganization[] = [];
    for (let index = 0; index < 4; index += 1) made.push(await createOrganization(app.worker));
    const [first, second, third, fourth] = made.map(({ organizationId }) => organizationId);
    await query(app.worker, sql`update organizations set tier = 'free' where id = ${first}`);
    await query(
      app.worker,
      sql`update organizations set deleted_at = now(), tier = 'free' where id = ${second}`,
    );
    const body = { reason: 'payment', note: 'Invoice 1' };
    await send('POST', `/admin/orgs/${third}/suspend`, body);
    const window = `created_after=${since}&created_before=${new Date(Date.now() + 1).toISOString()}`;
    /** The entries of this test, from all pages: other tests create organizations at the same time. */
    const listed = async (filter: string) => {
      const entries: Record<string, unknown>[] = [];
      for (let cursor = ''; ; ) {
        const page = await get(`/admin/orgs?${window}&limit=2${filter}${cursor && `&cursor=${cursor}`}`);
        entries.push(...page.data);
        if (!page.has_more) break;
        cursor = page.next_cursor;
      }
      return entries.filter(({ id }) => made.some(({ organizationId }) => organizationId === id));
    };
    const idsOfAll = async (filter: string) => (await listed(filter)).map(({ id }) => id);
    const all = await listed('');
    expect(all.map(({ id }) => id)).toEqual([fourth, third, second, first]);
    expect(all[1]).toMatchObject({ status: 'suspended', suspended_for: ['payment'], deleted_at: null });
    expect(all[2]).toMatchObject({ status: 'closed', deleted_at: expect.any(String) });
    expect(await idsOfAll('&order=asc')).toEqual([first, second, third, fourth]);
    expect(await idsOfAll('&status=active')).toEqual([fourth, first]);
    expect(await idsOfAll('&status=closed')).toEqual([second]);
    expect(await idsOfAll('&tier=free&status=active')).toEqual([first]);
    expect(idsOf(await get(`/admin/orgs?created_before=${since}&limit=100`))).not.toContain(first);
    for (const query of [
      'status=gone',
      'tier=gold',
      'created_after=yesterday',
      'limit=0',
      'cursor=x',
      'foo=1',
    ])
      expect((await app.call(`/admin/orgs?${query}`, { token: admin.token })).statusCode).toBe(400);
  });
});

describe('the search', () => {
  test('finds an organization by each of its names and addresses, once', async () => {
    const organization = await createOrganization(app.worker);
    const { organizationId, ownerId } = organization;
    const unique = organizationId.slice(-12);
    await rename(organizationId, `Acme 100% ${unique}`);
    const inbox = await createInbox(app.worker, organization);
    await query(
      app.worker,
      sql`update users set email = ${`grace-${unique}@people.example`} where id = ${ownerId}`,
    );
    const domain = { domain_name: `Mail-${unique}.example` };
    const claimed = await app.call('/domains', { method: 'POST', token: organization.token, body: domain });
    expect(claimed.statusCode).toBe(201);
    const search = async (q: string) => idsOf(await get(`/admin/orgs/search?q=${encodeURIComponent(q)}`));
    for (const q of [
      organizationId,
      `100% ${unique}`,
      `ACME 100% ${unique}`,
      `acme-100-${unique}`,
      inbox.email,
      inbox.email.toUpperCase(),
      `grace-${unique}`,
      `Grace-${unique}@people.example`,
      `mail-${unique}.exa`,
    ])
      expect([q, await search(q)]).toEqual([q, [organizationId]]);
    // A pattern character is a character.
    expect(await search(`100_ ${unique}`)).toEqual([]);
    expect(await search(`none-${unique}`)).toEqual([]);
  });

  test('needs two characters', async () => {
    for (const path of [
      '/admin/orgs/search',
      '/admin/orgs/search?q=a',
      `/admin/orgs/search?q=${'x'.repeat(321)}`,
    ])
      expectProblem(await app.call(path, { token: admin.token }), 'validation_error');
    const nul = await app.call('/admin/orgs/search?q=%00%00', { token: admin.token });
    expect(nul.statusCode).toBeLessThan(500);
  });
});

test('the top list orders organizations by a counter of this month', async () => {
  const amounts = [5_000_001, 5_000_003, 5_000_002];
  const ids: string[] = [];
  for (const amount of amounts) {
    const { organizationId } = await createOrganization(app.worker);
    ids.push(organizationId);
    await query(
      app.worker,
      sql`insert into usage_deltas (org_id, counter, at, amount) values
        (${organizationId}, 'messages_sent', now(), ${amount}),
        (${organizationId}, 'messages_sent', now() - interval '40 days', 9000000) returning org_id`,
    );
  }
  await applyUsageDeltas(app.worker);
  const { data } = await get('/admin/orgs/top?counter=messages_sent&limit=100');
  const own = data.filter(({ organization }: { organization: { id: string } }) =>
    ids.includes(organization.id),
  );
  expect(
    own.map(({ organization, value }: { organization: { id: string }; value: number }) => [
      organization.id,
      value,
    ]),
  ).toEqual([
    [ids[1], 5_000_003],
    [ids[2], 5_000_002],
    [ids[0], 5_000_001],
  ]);
  expect((await get('/admin/orgs/top?limit=1')).data).toHaveLength(1);
  expect((await app.call('/admin/orgs/top?counter=inboxes', { token: admin.token })).statusCode).toBe(400);
});

test('the detail shows status, counts, owners, environments, policies, usage and limits, and no mail', async () => {
  const organization = await createOrganization(app.worker);
  const { organizationId, ownerId, productionEnvironmentId } = organization;
  await createInbox(app.worker, organization);
  const detail = await get(`/admin/orgs/${organizationId}`);
  expect(detail).toMatchObject({
    id: organizationId,
    status: 'active',
    tier: 'enterprise',
    suspended_for: [],
    counts: { members: 1, environments: 2, inboxes: 1, domains: 0, api_keys: 1, open_suspensions: 0 },
    owners: [{ user_id: ownerId, status: 'active' }],
    policies: { require_mfa: false },
    usage: { counters: { messages_sent: { current: 0, unlimited: true } } },
    limits: { tier: 'enterprise' },
  });
  expect(detail.environments.map(({ id }: { id: string }) => id)).toContain(productionEnvironmentId);
  expectProblem(await app.call('/admin/orgs/org_none', { token: admin.token }), 'not_found');
});

test('usage and its events are read with and without the prefix, and described once', async () => {
  const { organizationId } = await createOrganization(app.worker);
  await send('PATCH', `/admin/orgs/${organizationId}/tier`, { tier: 'free', note: 'x' });
  for (const prefix of ['/api/v1', '']) {
    const usage = await app.call(`/admin/usage/${organizationId}`, { token: support.token, prefix });
    expect(usage.json()).toMatchObject({ counters: { messages_sent: { limit: 3_000, kind: 'hard' } } });
    const events = await app.call(`/admin/usage/${organizationId}/events?type=tier_changed`, {
      token: support.token,
      prefix,
    });
    expect(events.json().data).toMatchObject([
      { type: 'tier_changed', data: { from: 'enterprise', to: 'free' }, actor: admin.userId },
    ]);
    for (const path of ['/admin/usage/org_none', '/admin/usage/org_none/events'])
      expectProblem(await app.call(path, { token: support.token, prefix }), 'not_found');
    expect((await app.call(`/admin/usage/${organizationId}`, { prefix })).statusCode).toBe(401);
  }
  const paths = app.contract.operations
    .map(({ path }) => path)
    .filter((path) => path.includes('/admin/usage'));
  expect(paths.sort()).toEqual(['/api/v1/admin/usage/{orgId}', '/api/v1/admin/usage/{orgId}/events']);
});

test('the audit log of an organization is read by staff as its members read it, without the names of resources', async () => {
  const { organizationId, token } = await createOrganization(app.worker);
  await app.call('/org', { method: 'PATCH', token, body: { name: 'Renamed' } });
  const own = (await app.call('/org/audit-log', { token })).json();
  expect(own.data).toHaveLength(1);
  expect(own.data[0].resource).toMatchObject({ name: 'Renamed' });
  // The login of staff reads no names of an organization's resources.
  const [entry] = own.data;
  expect((await get(`/admin/orgs/${organizationId}/audit-log`)).data).toEqual([
    { ...entry, resource: { ...entry.resource, name: null } },
  ]);
  expect((await get(`/admin/orgs/${organizationId}/audit-log?action=none.done`)).data).toEqual([]);
  expectProblem(await app.call('/admin/orgs/org_none/audit-log', { token: admin.token }), 'not_found');
});

describe('reassigning the owner', () => {
  const arrange = async () => {
    const { organizationId, ownerId } = await createOrganization(app.worker);
    const memberId = await createTestUser(app.worker);
    await query(
      app.worker,
      sql`insert into members (org_id, user_id, role, created_at) values (${organizationId}, ${memberId}, 'viewer', now())
      returning org_id`,
    );
    const reassign = (userId: string, token?: string, body: object = {}) =>
      send(
        'POST',
        `/admin/orgs/${organizationId}/reassign-owner`,
        { user_id: userId, note: 'Ticket 9', ...body },
        token,
      );
    const roles = async () =>
      Object.fromEntries(
        (
          await query<{ id: string; role: string }>(
            app.worker,
            sql`select user_id as id, role from members where org_id = ${organizationId}`,
          )
        ).map(({ id, role }) => [id, role]),
      );
    return { organizationId, ownerId, memberId, reassign, roles };
  };

  test('makes a member the only owner and the former one an administrator, and mails both', async () => {
    const { organizationId, ownerId, memberId, reassign, roles } = await arrange();
    const { keyId } = await createKey(app.worker, {
      organizationId,
      permissions: ['billing:manage', 'inboxes:read'],
    });
    await query(
      app.worker,
      sql`update api_keys set created_by_user_id = ${ownerId} where id = ${keyId} returning id`,
    );
    const response = await reassign(memberId);
    expect(await query(app.worker, sql`select permissions from api_keys where id = ${keyId}`)).toEqual([
      { permissions: ['inboxes:read'] },
    ]);
    expect(response.statusCode).toBe(200);
    expect(response.json().owners).toMatchObject([{ user_id: memberId }]);
    expect(await roles()).toEqual({ [ownerId]: 'admin', [memberId]: 'owner' });
    const mails = await query<{ userId: string }>(
      app.worker,
      sql`select user_id as "userId" from notifications
      where org_id = ${organizationId} and template = 'owner-reassigned' order by user_id`,
    );
    expect(mails.map(({ userId }) => userId)).toEqual([ownerId, memberId].sort());
    expectProblem(await reassign(memberId), 'conflict');
  });

  test('needs an active member, and an admin', async () => {
    const { ownerId, memberId, reassign, roles } = await arrange();
    expectProblem(await reassign(await createTestUser(app.worker)), 'not_found');
    expectProblem(await reassign(memberId, support.token), 'permission_denied');
    await query(app.worker, sql`update users set status = 'suspended' where id = ${memberId} returning id`);
    expectProblem(await reassign(memberId), 'conflict');
    expect(await roles()).toEqual({ [ownerId]: 'owner', [memberId]: 'viewer' });
  });

  test('keeps an owner who gets past the single sign-on, unless staff accept that none does', async () => {
    const { organizationId, ownerId, memberId, reassign, roles } = await arrange();
    await query(
      app.worker,
      sql`insert into mfa_enrollments (id, user_id, type, name, confirmed_at, created_at)
      values (${newId('mfaEnrollment')}, ${ownerId}, 'webauthn', 'Key', now(), now()) returning id`,
    );
    await setPolicies(app.worker, organizationId, { enforce_sso: true });
    const refused = await reassign(memberId);
    expectProblem(refused, 'conflict');
    expect(refused.json()).toMatchObject({ policy: 'enforce_sso', org_id: organizationId });
    expect(await roles()).toEqual({ [ownerId]: 'owner', [memberId]: 'viewer' });
    expect((await reassign(memberId, undefined, { leave_without_break_glass: true })).statusCode).toBe(200);
    const [entry] = await query<{ details: object }>(
      app.worker,
      sql`select details from audit_entries
      where org_id = ${organizationId} and action = 'organization.owner_reassigned'`,
    );
    expect(entry?.details).toMatchObject({ to: memberId, left_without_break_glass: [organizationId] });
    // Back to one who gets in: nothing to accept.
    expect((await reassign(ownerId)).statusCode).toBe(200);
  });

  test('to two members at the same time leaves one owner', async () => {
    const { organizationId, memberId, reassign, roles } = await arrange();
    const otherId = await createTestUser(app.worker);
    await query(
      app.worker,
      sql`insert into members (org_id, user_id, role, created_at) values (${organizationId}, ${otherId}, 'admin', now())
      returning org_id`,
    );
    await Promise.all([reassign(memberId), reassign(otherId)]);
    expect(Object.values(await roles()).filter((role) => role === 'owner')).toHaveLength(1);
  });
});
