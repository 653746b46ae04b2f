import { beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import type { MemberRole } from '../../domain/identity/roles.ts';
import { findFreeSlug, requireSlug, toSlug } from '../../domain/organizations/slug.ts';
import { createKey, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });
let organization: TestOrganization;
let owner: string;
beforeEach(async () => {
  organization = await createOrganization(app.worker);
  owner = (await createTestSession(app.worker, organization.ownerId, { factors: ['totp'] })).token;
});

async function join(role: MemberRole) {
  const userId = await createTestUser(app.worker, { ...organization, role });
  return { userId, token: (await createTestSession(app.worker, userId)).token };
}
const latestAudit = async () => (await app.call('/org/audit-log?limit=1', { token: owner })).json().data[0];
const newSlug = () => `s${organization.organizationId.slice(-20)}${Math.random().toString(36).slice(2, 8)}`;

describe('an organization', () => {
  const patch = (body: unknown, token = owner) => app.call('/org', { method: 'PATCH', token, body });

  test('gets another name and slug', async () => {
    const slug = newSlug();
    const changed = await patch({ name: '  Analytical   Engines ', slug });
    expect(changed.json()).toMatchObject({ name: 'Analytical Engines', slug, tier: 'enterprise' });
    expect((await app.call('/org', { token: owner })).json()).toMatchObject({
      name: 'Analytical Engines',
      slug,
    });
    expect((await patch({ name: 'Engines' })).json()).toMatchObject({ name: 'Engines', slug });
    expect(await latestAudit()).toMatchObject({
      action: 'organization.updated',
      details: { name: 'Engines' },
    });
  });

  test('has a slug of its own, also after two concurrent changes', async () => {
    const other = await createOrganization(app.worker);
    const { token } = await createTestSession(app.worker, other.ownerId);
    const slug = newSlug();
    const both = await Promise.all([patch({ slug }), patch({ slug }, token)]);
    expect(both.map(({ statusCode }) => statusCode).sort()).toEqual([200, 409]);
  });

  test('keeps a slug that it releases for 90 days, since links for signing in contain it', async () => {
    const other = await createOrganization(app.worker);
    const { token } = await createTestSession(app.worker, other.ownerId);
    const [first, second] = [newSlug(), newSlug()];
    for (const slug of [first, second]) expect((await patch({ slug })).statusCode).toBe(200);
    expectProblem(await patch({ slug: first }, token), 'already_exists');
    const taken = await app.worker.systemTransaction(({ db }) => findFreeSlug(db, first));
    expect(taken).toMatch(new RegExp(`^${first}-[0-9a-f]{8}$`));
    expect((await patch({ slug: first })).statusCode).toBe(200);
    expectProblem(await patch({ slug: second }, token), 'already_exists');
    await query(
      app.worker,
      sql`delete from organizations where id = ${organization.organizationId} returning id`,
    );
    expectProblem(await patch({ slug: first }, token), 'already_exists');
    await query(
      app.worker,
      sql`update released_slugs set released_at = now() - interval '91 days' where slug = ${first} returning slug`,
    );
    expect((await patch({ slug: first }, token)).statusCode).toBe(200);
    expect((await query(app.worker, sql`select from released_slugs where slug = ${first}`)).length).toBe(0);
  });

  test('reserves no more than five slugs that it gave up', async () => {
    const slugs = Array.from({ length: 7 }, newSlug);
    for (const slug of slugs) await patch({ slug });
    const reserved = await query(
      app.worker,
      sql`select slug from released_slugs where org_id = ${organization.organizationId}`,
    );
    expect(reserved).toHaveLength(5);
  });

  test.each([
    { slug: 'admin' },
    { slug: 'api' },
    { slug: 'a' },
    { slug: '-acme' },
    { slug: 'acme-' },
    { slug: 'ac--me' },
    { slug: 'Acme' },
    { slug: 'acme/x' },
    { slug: 'аcme' },
    { slug: 'a'.repeat(41) },
    { slug: null },
    { name: '' },
    { name: 'https://evil.example' },
    { name: 'Ring www.evil.example' },
    { name: 'a\u202Eb' },
    { name: 'x'.repeat(51) },
    { name: null },
    { status: 'active' },
    { tier: 'enterprise' },
    { id: 'org_x' },
  ])('rejects the change %j', async (body) => {
    expectProblem(await patch(body), 'validation_error');
    expect((await app.call('/org', { token: owner })).json()).toMatchObject({ name: 'Test' });
  });

  test('is not changed by developers, viewers and bound keys', async () => {
    for (const role of ['developer', 'viewer'] as const)
      expectProblem(await patch({ name: 'x' }, (await join(role)).token), 'permission_denied');
    const environmentId = organization.productionEnvironmentId;
    const bound = await createKey(app.worker, { ...organization, environmentId });
    expectProblem(await patch({ name: 'x' }, bound.token), 'permission_denied');
  });
});

test('the slugs made from names are slugs, and none is a reserved word by choice', () => {
  for (const name of ['Analytical Engines', 'Ümläute & Söhne', 'a-b--c', 'x'.repeat(60)])
    expect(requireSlug(toSlug(name), '/slug')).toBe(toSlug(name));
  expect(() => requireSlug(toSlug('Admin'), '/slug')).toThrow('is reserved');
});

describe('ownership', () => {
  const transfer = (userId: string, token = owner) =>
    app.call('/org/transfer-ownership', { method: 'POST', token, body: { user_id: userId } });
  const roleOf = async (userId: string) => {
    const { data } = (await app.call('/org/members', { token: organization.token })).json();
    return data.find(({ user_id }: { user_id: string }) => user_id === userId)?.role;
  };

  test('goes to another member; the former owner becomes an administrator, and both get an email', async () => {
    const next = await join('developer');
    expect((await transfer(next.userId)).statusCode).toBe(204);
    expect([await roleOf(next.userId), await roleOf(organization.ownerId)]).toEqual(['owner', 'admin']);
    const mails = await query<{ userId: string }>(
      app.worker,
      sql`select user_id as "userId" from notifications
      where org_id = ${organization.organizationId} and template = 'ownership-transferred'`,
    );
    expect(mails.map(({ userId }) => userId).sort()).toEqual([next.userId, organization.ownerId].sort());
    expect(await latestAudit()).toMatchObject({
      action: 'organization.ownership_transferred',
      actor: { id: organization.ownerId },
      details: { from: organization.ownerId, to: next.userId },
    });
    expectProblem(await transfer(organization.ownerId), 'permission_denied');
  });

  test('needs a fresh sign-in of an owner', async () => {
    const next = await join('admin');
    const { token, id } = await createTestSession(app.worker, organization.ownerId);
    await query(
      app.worker,
      sql`update sessions set authenticated_at = now() - interval '11 minutes' where id = ${id} returning id`,
    );
    expectProblem(await transfer(next.userId, token), 'session_expired');
    expectProblem(await transfer(next.userId, next.token), 'permission_denied');
    expectProblem(await transfer(next.userId, organization.token), 'permission_denied');
    expect(await roleOf(next.userId)).toBe('admin');
  });

  test('goes only to an active member of the organization', async () => {
    expectProblem(await transfer(organization.ownerId), 'conflict');
    expectProblem(await transfer((await createOrganization(app.worker)).ownerId), 'not_found');
    const suspended = await join('admin');
    await query(
      app.worker,
      sql`update users set status = 'suspended' where id = ${suspended.userId} returning id`,
    );
    expectProblem(await transfer(suspended.userId), 'conflict');
  });

  test('has one winner of two transfers at the same time', async () => {
    const [first, second] = [await join('admin'), await join('admin')];
    const both = await Promise.all([transfer(first.userId), transfer(second.userId)]);
    expect(both.map(({ statusCode }) => statusCode).sort()).toEqual([204, 403]);
  });

  test('does not stay with a suspended account alone', async () => {
    const second = await join('owner');
    await query(
      app.worker,
      sql`update users set status = 'suspended' where id = ${second.userId} returning id`,
    );
    const demote = { method: 'PATCH', token: owner, body: { role: 'admin' } } as const;
    expectProblem(await app.call(`/org/members/${organization.ownerId}`, demote), 'conflict');
  });
});

describe('environments', () => {
  const create = (body: unknown, token = owner) =>
    app.call('/org/environments', { method: 'POST', token, body });
  const patch = (id: string, body: unknown) =>
    app.call(`/org/environments/${id}`, { method: 'PATCH', token: owner, body });
  const remove = (id: string) => app.call(`/org/environments/${id}`, { method: 'DELETE', token: owner });
  const createInbox = (envId: string, token = owner) =>
    app.call('/inboxes', { method: 'POST', token, headers: { 'x-env-id': envId }, body: {} });

  test('are created, used, renamed and deleted', async () => {
    const created = await create({ name: 'Staging EU' });
    expect(created.statusCode).toBe(201);
    const { id } = created.json();
    expect(created.json()).toMatchObject({
      name: 'Staging EU',
      slug: 'staging-eu',
      kind: 'sandbox',
      status: 'active',
    });
    expect((await app.call('/inboxes', { token: owner, headers: { 'x-env-id': id } })).statusCode).toBe(200);
    expect((await patch(id, { name: 'QA', slug: 'qa' })).json()).toMatchObject({ name: 'QA', slug: 'qa' });
    expect((await remove(id)).statusCode).toBe(204);
    expectProblem(await app.call('/inboxes', { token: owner, headers: { 'x-env-id': id } }), 'not_found');
    expectProblem(await remove(id), 'not_found');
    const { data } = (await app.call(`/org/audit-log?resource_id=${id}&order=asc`, { token: owner })).json();
    expect(data.map(({ action }: { action: string }) => action)).toEqual([
      'environment.created',
      'environment.updated',
      'environment.deleted',
    ]);
  });

  test('include the default one, whatever its name', async () => {
    const id = organization.productionEnvironmentId;
    expect((await patch(id, { name: 'Live' })).json()).toMatchObject({ name: 'Live', slug: 'production' });
    for (const token of [owner, organization.token]) {
      const inbox = await app.call('/inboxes', { method: 'POST', token, body: {} });
      expect(inbox.json()).toMatchObject({ env_id: id });
    }
    expectProblem(await patch(id, { slug: 'live' }), 'conflict');
    expectProblem(await remove(id), 'conflict');
    // Another environment does not become the default by its slug.
    expectProblem(await create({ name: 'Fake', slug: 'production', kind: 'sandbox' }), 'already_exists');
  });

  test('are deleted only when they are empty', async () => {
    const { id } = (await create({ name: 'Staging' })).json();
    const inbox = (await createInbox(id)).json();
    expect(expectProblem(await remove(id), 'conflict')).toMatchObject({ contains: 'inboxes' });
    const headers = { 'x-env-id': id };
    const draft = await app.call(`/inboxes/${inbox.id}/drafts`, {
      method: 'POST',
      token: owner,
      headers,
      body: { subject: 'x' },
    });
    const key = await app.call('/api-keys', {
      method: 'POST',
      token: owner,
      body: { name: 'x', env_id: id },
    });
    const url = 'https://receiver.example.test/';
    const endpoint = await app.call('/webhooks/endpoints', {
      method: 'POST',
      token: owner,
      headers,
      body: { url, events: ['message.sent'] },
    });
    expect(expectProblem(await remove(id), 'conflict').contains).toBe(
      'inboxes, drafts, webhook endpoints, API keys',
    );
    for (const path of [`/api-keys/${key.json().id}`, `/webhooks/endpoints/${endpoint.json().id}`])
      expect((await app.call(path, { method: 'DELETE', token: owner, headers })).statusCode).toBe(204);
    await app.call(`/drafts/${draft.json().id}`, { method: 'DELETE', token: owner, headers });
    await app.call(`/inboxes/${inbox.id}`, { method: 'DELETE', token: owner, headers });
    expect((await remove(id)).statusCode).toBe(204);
  });

  test('do not lose what is created while they are deleted', async () => {
    const { id } = (await create({ name: 'Staging' })).json();
    const [removed, created] = await Promise.all([remove(id), createInbox(id)]);
    if (created.statusCode === 201) expect(removed.statusCode).toBe(409);
    else {
      expect([404, 409]).toContain(created.statusCode);
      expect(removed.statusCode).toBe(204);
    }
  });

  test('that are suspended stay, since a new one would not be suspended', async () => {
    const { id } = (await create({ name: 'Staging' })).json();
    await query(app.worker, sql`update environments set status = 'suspended' where id = ${id} returning id`);
    expectProblem(await remove(id), 'environment_suspended');
    expectProblem(await patch(id, { name: 'x' }), 'environment_suspended');
  });

  test('have names and slugs of their own', async () => {
    await create({ name: 'Staging' });
    expectProblem(await create({ name: 'Staging' }), 'already_exists');
    expectProblem(await create({ name: 'Other', slug: 'staging' }), 'already_exists');
    const other = await createOrganization(app.worker);
    const { token } = await createTestSession(app.worker, other.ownerId);
    expect((await create({ name: 'Staging' }, token)).statusCode).toBe(201);
  });

  test('are limited to 100', async () => {
    await query(
      app.worker,
      sql`insert into environments (id, org_id, name, slug, kind, status, created_at, updated_at)
      select ${organization.organizationId} || n, ${organization.organizationId}, 'e' || n, 'e' || n, 'sandbox', 'active',
        now(), now()
      from generate_series(1, 97) n returning id`,
    );
    const statuses = await Promise.all(['A1', 'B1'].map(async (name) => (await create({ name })).statusCode));
    expect(statuses.sort()).toEqual([201, 409]);
  });

  test.each([
    {},
    { name: '' },
    { name: 'x', kind: 'live' },
    { name: 'https://evil.example' },
    { name: '!!', slug: '--' },
    { name: 'Admin' },
    { name: 'x', slug: 'api' },
    { name: 'x', status: 'active' },
    { name: 'x', org_id: 'org_x' },
    null,
  ])('reject the body %j', async (body) => {
    expectProblem(await create(body), 'validation_error');
  });

  test.each(['developer', 'viewer'] as const)('are not managed by a %s', async (role) => {
    const { token } = await join(role);
    expectProblem(await create({ name: 'x' }, token), 'permission_denied');
    expect((await app.call('/org/environments', { token })).json().data).toHaveLength(2);
  });
});
