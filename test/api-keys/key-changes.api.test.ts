import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { pino } from 'pino';
import type { Permission } from '../../domain/identity/permissions.ts';
import type { MemberRole } from '../../domain/identity/roles.ts';
import { notifyExpiringKeys } from '../../domain/people/notify-expiring-keys.ts';
import { createSharedServices } from '../../domain/shared-services.ts';
import { eventually } from '../support/eventually.ts';
import { createKey, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { recordingOutbox } from '../support/test-app.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
let organization: TestOrganization;
let owner: string;
beforeEach(async () => {
  organization = await createOrganization(app.worker);
  owner = (await createTestSession(app.worker, organization.ownerId, { factors: ['totp'] })).token;
});

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const inHours = (hours: number) => new Date(Date.now() + hours * HOUR_MS).toISOString();

const create = (body: object, token = owner) =>
  app.call('/api-keys', { method: 'POST', token, body: { name: 'Bot', ...body } });
const patch = (id: string, body: unknown, token = owner) =>
  app.call(`/api-keys/${id}`, { method: 'PATCH', token, body });
const rotate = (id: string, body: unknown = {}, token = owner) =>
  app.call(`/api-keys/${id}/rotate`, { method: 'POST', token, body });
const get = async (id: string, token = owner) => (await app.call(`/api-keys/${id}`, { token })).json();
const statusOf = async (token: string, ip = '192.0.2.1') =>
  (await app.call('/inboxes', { token, headers: { 'x-forwarded-for': ip } })).statusCode;

async function join(role: MemberRole) {
  const userId = await createTestUser(app.worker, { ...organization, role });
  return { userId, token: (await createTestSession(app.worker, userId)).token };
}

/** A key that may manage keys, with limits of its own. */
async function createMaker(body: object = {}) {
  const permissions: Permission[] = ['keys:manage', 'inboxes:read', 'messages:read'];
  return (await create({ permissions, ...body })).json();
}

const readAudit = async (id: string) =>
  (await app.call(`/org/audit-log?resource_id=${id}&order=asc`, { token: owner })).json().data;

describe('address ranges of a key', () => {
  test('decide who may use it', async () => {
    const { token, allowed_cidrs } = (
      await create({ allowed_cidrs: ['198.51.100.0/24', '2001:db8::1'] })
    ).json();
    expect(allowed_cidrs).toEqual(['198.51.100.0/24', '2001:db8::1']);
    expect(await statusOf(token, '198.51.100.7')).toBe(200);
    expect(await statusOf(token, '2001:db8::1')).toBe(200);
    expect(await statusOf(token, '192.0.2.1')).toBe(403);
  });

  test.each([
    ['198.51.100.0/33'],
    ['203.0.113.0/024'],
    ['203.0.113.0/00'],
    ['010.0.0.0/8'],
    ['x'],
    [''],
    ['fe80::1%eth0'],
    ['198.51.100.0/24', '::/129'],
  ])('reject malformed ones: %j', async (...ranges) => {
    expectProblem(await create({ allowed_cidrs: ranges }), 'validation_error');
    const { id } = (await create({})).json();
    expectProblem(await patch(id, { allowed_cidrs: ranges }), 'validation_error');
  });

  test('are inherited, and not wider than those of the creating key', async () => {
    const maker = await createMaker({ allowed_cidrs: ['127.0.0.0/8', '2001:db8::/32'] });
    const makeChild = (body: object) => create({ permissions: ['inboxes:read'], ...body }, maker.token);
    expect((await makeChild({})).json().allowed_cidrs).toEqual(['127.0.0.0/8', '2001:db8::/32']);
    expect((await makeChild({ allowed_cidrs: ['127.0.0.1', '2001:db8:1::/48'] })).statusCode).toBe(201);
    for (const range of ['0.0.0.0/0', '127.0.0.0/7', '128.0.0.0/8', '::/0', '2001:db8::/31', '::ffff:0:0/96'])
      expectProblem(await makeChild({ allowed_cidrs: ['127.0.0.1', range] }), 'permission_denied');
    expectProblem(await makeChild({ allowed_cidrs: [] }), 'permission_denied');
    // The key does not widen itself either.
    expectProblem(await patch(maker.id, { allowed_cidrs: [] }, maker.token), 'permission_denied');
    expect((await get(maker.id)).allowed_cidrs).toEqual(['127.0.0.0/8', '2001:db8::/32']);
  });
});

describe('a change of a key', () => {
  test('takes effect with its next request', async () => {
    const { id, token } = (await create({ permissions: ['inboxes:read', 'messages:read'] })).json();
    expect(await statusOf(token)).toBe(200);
    const body = { name: 'Reader', permissions: ['messages:read'], expires_at: inHours(5) };
    expect((await patch(id, body)).json()).toMatchObject({ ...body, id });
    expect(await statusOf(token)).toBe(403);
    expect((await patch(id, { expires_at: null, permissions: ['inboxes:read'] })).json()).toMatchObject({
      name: 'Reader',
      expires_at: null,
    });
    expect(await statusOf(token)).toBe(200);
    expect((await readAudit(id)).map(({ action }: { action: string }) => action)).toEqual([
      'api_key.created',
      'api_key.updated',
      'api_key.updated',
    ]);
  });

  test('grants nothing that neither the key nor the caller has', async () => {
    const maker = await createMaker({ expires_at: inHours(48) });
    const wide = (
      await create({ permissions: ['inboxes:read', 'org:update'], expires_at: inHours(240) })
    ).json();
    const asMaker = (body: object) => patch(wide.id, body, maker.token);
    expect(
      expectProblem(
        await asMaker({ permissions: ['inboxes:read', 'org:update', 'billing:manage'] }),
        'permission_denied',
      ),
    ).toMatchObject({ permission: 'billing:manage' });
    expectProblem(await asMaker({ expires_at: null }), 'permission_denied');
    expectProblem(await asMaker({ expires_at: inHours(241) }), 'permission_denied');
    expect(await get(wide.id)).toMatchObject({ permissions: wide.permissions, expires_at: wide.expires_at });
    // It may keep what the key has, take it away, and add what the caller has.
    expect((await asMaker({ permissions: ['org:update', 'messages:read'] })).statusCode).toBe(200);
    expect((await asMaker({ expires_at: inHours(200) })).statusCode).toBe(200);
    expect((await asMaker({ permissions: ['messages:read'] })).json().permissions).toEqual(['messages:read']);
    expectProblem(await asMaker({ permissions: ['org:update'] }), 'permission_denied');
  });

  test('lets no key raise itself', async () => {
    const maker = await createMaker({ expires_at: inHours(2) });
    for (const body of [
      { permissions: ['keys:manage', 'messages:send'] },
      { expires_at: null },
      { expires_at: inHours(3) },
    ])
      expectProblem(await patch(maker.id, body, maker.token), 'permission_denied');
  });

  test('cannot bring an expired or revoked key back', async () => {
    const { keyId } = await createKey(app.worker, {
      ...organization,
      expiresAt: new Date(Date.now() - 1_000),
    });
    expectProblem(await patch(keyId, { expires_at: inHours(1) }), 'conflict');
    expectProblem(await rotate(keyId), 'conflict');
    const { id } = (await create({})).json();
    await app.call(`/api-keys/${id}`, { method: 'DELETE', token: owner });
    expectProblem(await patch(id, { name: 'x' }), 'not_found');
    expectProblem(await rotate(id), 'not_found');
  });

  test.each([
    { permissions: ['root'] },
    { permissions: ['messages:approve'] },
    { permissions: ['org:delete'] },
    { permissions: null },
    { permissions: 'keys:manage' },
    { name: '' },
    { name: null },
    { name: 'a\nb' },
    { expires_at: '2020-01-01T00:00:00Z' },
    { expires_at: 'tomorrow' },
    { allowed_cidrs: null },
    { env_id: null },
    { inbox_id: null },
    { org_id: 'org_x' },
    { created_by_user_id: 'usr_x' },
    { token: 'x' },
    [],
    'x',
  ])('rejects the body %j', async (body) => {
    const { id } = (await create({})).json();
    const before = await get(id);
    expectProblem(await patch(id, body), 'validation_error');
    expect(await get(id)).toEqual(before);
  });
});

describe('rotation', () => {
  test('replaces the token and keeps the key', async () => {
    const key = (await create({ permissions: ['inboxes:read'], allowed_cidrs: ['192.0.2.0/24'] })).json();
    const response = await rotate(key.id);
    expect(response.statusCode).toBe(201);
    const rotated = response.json();
    const { token: _old, last_four: _lastFour, ...same } = key;
    expect(rotated).toMatchObject({ ...same, previous_token: null });
    expect(rotated.token).not.toBe(key.token);
    expect(await statusOf(key.token)).toBe(401);
    expect(await statusOf(rotated.token)).toBe(200);
    const [, audit] = await readAudit(key.id);
    expect(audit).toMatchObject({ action: 'api_key.rotated', details: { overlap_seconds: 0 } });
    expect(JSON.stringify(audit)).not.toContain(rotated.token);
  });

  test('keeps the old token working for the overlap, without a job that ends it', async () => {
    const key = (await create({ permissions: ['inboxes:read'] })).json();
    const rotated = (await rotate(key.id, { overlap_seconds: 3_600 })).json();
    expect(rotated.previous_token).toMatchObject({ last_four: key.last_four, last_used_at: null });
    expect([await statusOf(key.token), await statusOf(rotated.token)]).toEqual([200, 200]);
    await eventually(async () =>
      expect(await get(key.id)).toMatchObject({
        previous_token: { last_used_at: expect.any(String) },
        last_used_at: expect.any(String),
      }),
    );
    await query(
      app.worker,
      sql`update api_keys set previous_expires_at = now() - interval '1 second' where id = ${key.id} returning id`,
    );
    expect([await statusOf(key.token), await statusOf(rotated.token)]).toEqual([401, 200]);
    expect((await get(key.id)).previous_token).toBeNull();
  });

  test('ends the token before the previous one', async () => {
    const first = (await create({ permissions: ['inboxes:read'] })).json();
    const second = (await rotate(first.id, { overlap_seconds: 600 })).json();
    const third = (await rotate(first.id, { overlap_seconds: 600 })).json();
    expect(await Promise.all([first, second, third].map(({ token }) => statusOf(token)))).toEqual([
      401, 200, 200,
    ]);
    await app.call(`/api-keys/${first.id}`, { method: 'DELETE', token: owner });
    expect(await Promise.all([second, third].map(({ token }) => statusOf(token)))).toEqual([401, 401]);
  });

  test('leaves one current token after two concurrent ones', async () => {
    const { id } = (await create({ permissions: ['inboxes:read'] })).json();
    const rotated = await Promise.all([rotate(id), rotate(id)]);
    const statuses = await Promise.all(rotated.map((response) => statusOf(response.json().token)));
    expect(statuses.sort()).toEqual([200, 401]);
  });

  test('does not let the old token manage keys: a leaked one must not take the key over', async () => {
    const maker = await createMaker();
    const rotated = (await rotate(maker.id, { overlap_seconds: 600 }, maker.token)).json();
    expect(await statusOf(maker.token)).toBe(200);
    for (const response of [
      await rotate(maker.id, {}, maker.token),
      await create({}, maker.token),
      await patch(maker.id, { name: 'x' }, maker.token),
      await app.call(`/api-keys/${maker.id}`, { method: 'DELETE', token: maker.token }),
    ])
      expectProblem(response, 'permission_denied');
    expect(await statusOf(rotated.token)).toBe(200);
  });

  test('gives no caller a token with more permissions than the caller has', async () => {
    const maker = await createMaker({ expires_at: inHours(2), allowed_cidrs: ['127.0.0.1'] });
    const limits = { expires_at: inHours(1), allowed_cidrs: ['127.0.0.1'], permissions: ['inboxes:read'] };
    const within = (await create(limits)).json();
    expect((await rotate(within.id, {}, maker.token)).statusCode).toBe(201);
    for (const beyond of [
      { permissions: ['messages:send'] },
      { expires_at: inHours(3) },
      { allowed_cidrs: [] },
    ]) {
      const key = (await create({ ...limits, ...beyond })).json();
      expectProblem(await rotate(key.id, {}, maker.token), 'permission_denied');
      expect(await statusOf(key.token, '127.0.0.1')).toBe(beyond.permissions ? 403 : 200);
    }
    const admin = await join('admin');
    const ofOwner = (await create({ permissions: ['billing:manage'] })).json();
    expectProblem(await rotate(ofOwner.id, {}, admin.token), 'permission_denied');
  });

  test.each([{ overlap_seconds: -1 }, { overlap_seconds: 604_801 }, { overlap_seconds: '1' }, { x: 1 }])(
    'rejects the body %j',
    async (body) => {
      const { id, token } = (await create({ permissions: ['inboxes:read'] })).json();
      expectProblem(await rotate(id, body), 'validation_error');
      expect(await statusOf(token)).toBe(200);
    },
  );
});

describe('keys of people', () => {
  test('of a developer manage no more than the developer', async () => {
    const developer = await join('developer');
    const own = (await create({ permissions: ['keys:manage', 'inboxes:read'] }, developer.token)).json();
    for (const token of [developer.token, own.token]) {
      expectProblem(await app.call(`/api-keys/${organization.keyId}`, { token }), 'not_found');
      expectProblem(await patch(organization.keyId, { name: 'x' }, token), 'not_found');
      expectProblem(await rotate(organization.keyId, {}, token), 'not_found');
      expectProblem(
        await app.call(`/api-keys/${organization.keyId}`, { method: 'DELETE', token }),
        'not_found',
      );
      expectProblem(await create({ permissions: ['policies:manage'] }, token), 'permission_denied');
      expectProblem(await patch(own.id, { permissions: ['policies:manage'] }, token), 'permission_denied');
      const { data } = (await app.call('/api-keys', { token })).json();
      expect(data.map(({ id }: { id: string }) => id)).toEqual([own.id]);
    }
  });

  test('are not created by a viewer', async () => {
    expectProblem(await create({}, (await join('viewer')).token), 'permission_denied');
  });

  test('need a second factor to be created where the organization requires one', async () => {
    await app.call('/org/policies', { method: 'PATCH', token: owner, body: { require_mfa: true } });
    const admin = await join('admin');
    expect(expectProblem(await create({}, admin.token), 'policy_violation')).toMatchObject({
      policy: 'require_mfa',
    });
    const strong = await createTestSession(app.worker, admin.userId, { factors: ['totp'] });
    expect((await create({}, strong.token)).statusCode).toBe(201);
  });

  test('can be listed by person', async () => {
    const developer = await join('developer');
    const own = (await create({}, developer.token)).json();
    const list = await app.call(`/api-keys?created_by_user_id=${developer.userId}`, { token: owner });
    expect(list.json().data).toMatchObject([{ id: own.id, created_by_user_id: developer.userId }]);
  });

  test('end with the membership, with the keys that they created', async () => {
    const admin = await join('admin');
    const maker = (await create({ permissions: ['keys:manage', 'inboxes:read'] }, admin.token)).json();
    const child = (await create({ permissions: ['inboxes:read'] }, maker.token)).json();
    const member = `/org/members/${admin.userId}`;
    expect((await app.call(member, { method: 'DELETE', token: owner })).statusCode).toBe(204);
    for (const token of [maker.token, child.token]) expect(await statusOf(token)).toBe(401);
    expect(await statusOf(admin.token)).toBe(403);
    expect(await statusOf(organization.token)).toBe(200);
    expect((await readAudit(admin.userId)).at(-1)).toMatchObject({
      action: 'member.removed',
      details: { role: 'admin', keys_revoked: 2 },
    });
  });

  test('lose the permissions that a lower role of the person lacks, with the keys that they created', async () => {
    const admin = await join('admin');
    const permissions = ['keys:manage', 'members:manage', 'inboxes:read', 'messages:send'];
    const maker = (await create({ permissions }, admin.token)).json();
    const child = (await create({ permissions: ['members:manage', 'inboxes:read'] }, maker.token)).json();
    const harmless = (await create({ permissions: ['inboxes:read'] }, admin.token)).json();
    const demote = (role: string) =>
      app.call(`/org/members/${admin.userId}`, { method: 'PATCH', token: owner, body: { role } });
    expect((await demote('developer')).statusCode).toBe(200);
    const permissionsOf = async (id: string) =>
      (await app.call(`/api-keys/${id}`, { token: owner })).json().permissions;
    expect(await permissionsOf(maker.id)).toEqual(['keys:manage', 'inboxes:read', 'messages:send']);
    expect(await permissionsOf(child.id)).toEqual(['inboxes:read']);
    const invite = {
      method: 'POST',
      token: maker.token,
      body: { email: 'x@people.example', role: 'viewer' },
    } as const;
    expectProblem(await app.call('/org/invitations', invite), 'permission_denied');
    expect((await readAudit(admin.userId)).at(-1)).toMatchObject({
      action: 'member.role_changed',
      details: { from: 'admin', to: 'developer', keys_limited: 2, keys_revoked: 0 },
    });
    expect((await demote('admin')).statusCode).toBe(200);
    expect(await permissionsOf(child.id)).toEqual(['inboxes:read']);
    expect(await permissionsOf(harmless.id)).toEqual(['inboxes:read']);
  });

  test('are revoked with a lower role, if the caller asks for it', async () => {
    const admin = await join('admin');
    const key = (await create({ permissions: ['inboxes:read'] }, admin.token)).json();
    const body = { role: 'viewer', revoke_keys: true };
    const member = `/org/members/${admin.userId}`;
    expect((await app.call(member, { method: 'PATCH', token: owner, body })).statusCode).toBe(200);
    expect(await statusOf(key.token)).toBe(401);
  });

  test('created while the role becomes lower are limited, too', async () => {
    const admin = await join('admin');
    const [demoted, ...created] = await Promise.all([
      app.call(`/org/members/${admin.userId}`, {
        method: 'PATCH',
        token: owner,
        body: { role: 'developer' },
      }),
      ...Array.from({ length: 5 }, () =>
        create({ permissions: ['members:manage', 'inboxes:read'] }, admin.token),
      ),
    ]);
    expect(demoted?.statusCode).toBe(200);
    const kept = await query<{ permissions: string[] }>(
      app.worker,
      sql`select permissions from api_keys where created_by_user_id = ${admin.userId}`,
    );
    expect(kept.every(({ permissions }) => permissions.join() === 'inboxes:read')).toBe(true);
    expect(kept).toHaveLength(created.filter(({ statusCode }) => statusCode === 201).length);
  });

  test('of a former owner lose what only owners may do', async () => {
    const { token } = await createTestSession(app.worker, organization.ownerId);
    const key = (await create({ permissions: ['billing:manage', 'inboxes:read'] }, token)).json();
    const next = await join('admin');
    const transfer = { method: 'POST', token, body: { user_id: next.userId } } as const;
    expect((await app.call('/org/transfer-ownership', transfer)).statusCode).toBe(204);
    const [row] = await query(app.worker, sql`select permissions from api_keys where id = ${key.id}`);
    expect(row).toEqual({ permissions: ['inboxes:read'] });
  });

  test('stay, and are listed, if the person is offboarded without them', async () => {
    const admin = await join('admin');
    const key = (await create({ permissions: ['inboxes:read'] }, admin.token)).json();
    const path = `/org/members/${admin.userId}/offboard`;
    const kept = await app.call(path, { method: 'POST', token: owner, body: { revoke_keys: false } });
    expect(kept.statusCode).toBe(200);
    expect(kept.json()).toMatchObject({
      user_id: admin.userId,
      keys_revoked: 0,
      remaining_keys: [{ id: key.id }],
    });
    expect([await statusOf(key.token), await statusOf(admin.token)]).toEqual([200, 403]);
    expectProblem(await app.call(path, { method: 'POST', token: owner, body: {} }), 'not_found');
    const second = await join('developer');
    await create({}, second.token);
    const ended = await app.call(`/org/members/${second.userId}/offboard`, {
      method: 'POST',
      token: owner,
      body: {},
    });
    expect(ended.json()).toMatchObject({ keys_revoked: 1, remaining_keys: [] });
  });

  test('created while the person is removed end, too', async () => {
    const admin = await join('admin');
    const [removed, ...created] = await Promise.all([
      app.call(`/org/members/${admin.userId}`, { method: 'DELETE', token: owner }),
      ...Array.from({ length: 5 }, () => create({ permissions: ['inboxes:read'] }, admin.token)),
    ]);
    expect(removed?.statusCode).toBe(204);
    for (const response of created)
      if (response.statusCode === 201) expect(await statusOf(response.json().token)).toBe(401);
      else expect([401, 403]).toContain(response.statusCode);
  });
});

test('a key gives no role that its own permissions do not cover', async () => {
  const viewer = await join('viewer');
  const changeRole = (userId: string, role: string, token: string) =>
    app.call(`/org/members/${userId}`, { method: 'PATCH', token, body: { role } });
  for (const role of ['owner', 'admin', 'developer'])
    expectProblem(await changeRole(viewer.userId, role, organization.token), 'permission_denied');
  expect((await changeRole((await join('admin')).userId, 'viewer', organization.token)).statusCode).toBe(200);
  const { token } = await createKey(app.worker, { ...organization, permissions: ['members:manage'] });
  expectProblem(await changeRole(viewer.userId, 'viewer', token), 'permission_denied');
});

describe('the notice of expiry', () => {
  const notify = () => {
    const services = createSharedServices({
      config: app.config,
      database: app.worker,
      workerDatabase: app.worker,
      outbox: recordingOutbox().outbox,
      storage: app.storage,
      logger: pino({ level: 'silent' }),
    });
    return notifyExpiringKeys({ ...services, database: app.worker });
  };
  const addKey = async (createdByUserId: string | null, expiresInDays: number, ageDays = 30) => {
    const { keyId } = await createKey(app.worker, {
      ...organization,
      expiresAt: new Date(Date.now() + expiresInDays * DAY_MS),
    });
    await query(
      app.worker,
      sql`update api_keys set created_by_user_id = ${createdByUserId}, created_at = now() - ${ageDays} * interval '1 day'
      where id = ${keyId} returning id`,
    );
    return keyId;
  };
  const readNotices = (keyId: string) =>
    query<{ userId: string; template: string }>(
      app.worker,
      sql`select user_id as "userId", template from notifications where params->>'keyId' = ${keyId}`,
    );

  test('goes once to the person behind the key', async () => {
    const developer = await join('developer');
    const expiring = await addKey(developer.userId, 6);
    const others = [await addKey(developer.userId, 8), await addKey(developer.userId, 6, 1)];
    await Promise.all([notify(), notify()]);
    expect(await readNotices(expiring)).toEqual([{ userId: developer.userId, template: 'api-key-expiring' }]);
    for (const keyId of others) expect(await readNotices(keyId)).toEqual([]);
    // A later expiry is a new occasion.
    await patch(expiring, { expires_at: inHours(24 * 5) });
    await notify();
    expect(await readNotices(expiring)).toHaveLength(2);
  });

  test('goes to the owners if that person has left', async () => {
    const developer = await join('developer');
    const keyId = await addKey(developer.userId, 6);
    const path = `/org/members/${developer.userId}/offboard`;
    await app.call(path, { method: 'POST', token: owner, body: { revoke_keys: false } });
    await notify();
    expect(await readNotices(keyId)).toMatchObject([{ userId: organization.ownerId }]);
  });
});
