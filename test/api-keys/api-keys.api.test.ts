import { beforeAll, expect, test } from '@jest/globals';
import { ApiKeyEntity } from '../../domain/api-keys/api-key.entity.ts';
import { createApiKeyToken } from '../../domain/api-keys/api-key-token.ts';
import { AGENT_PERMISSIONS } from '../../domain/identity/permissions.ts';
import { sha256 } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { newId } from '../../platform/ids.ts';
import { eventually } from '../support/eventually.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();
let organization: TestOrganization;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
});

interface Created {
  id: string;
  token: string;
  env_id: string | null;
  inbox_id: string | null;
  permissions: string[];
}
const create = (body: unknown, token = organization.token) =>
  app.call('/api-keys', { method: 'POST', token, body });

test('a key is shown once, works, and is stored as a hash', async () => {
  const response = await create({ name: 'Agent' });
  expect(response.statusCode).toBe(201);
  const created = response.json<Created & { last_four: string }>();
  expect(created).toMatchObject({
    name: 'Agent',
    token: expect.stringMatching(/^ask_live_[0-9A-Za-z]{38}$/),
    permissions: AGENT_PERMISSIONS,
    env_id: null,
    inbox_id: null,
    expires_at: null,
    created_by_key_id: organization.keyId,
    last_used_at: null,
    last_used_from: null,
  });
  expect(created.token.endsWith(created.last_four)).toBe(true);
  expect((await app.call('/inboxes', { token: created.token })).statusCode).toBe(200);
  const read = await app.call(`/api-keys/${created.id}`, { token: organization.token });
  expect(read.json()).not.toHaveProperty('token');
  await app.worker.systemTransaction(async ({ db }) => {
    const row = await db
      .selectFrom('api_keys')
      .select(columnsOf(ApiKeyEntity))
      .where('id', '=', created.id)
      .executeTakeFirstOrThrow();
    expect(Buffer.from(row.tokenHash)).toEqual(sha256(created.token));
  });
});

test('a key of a sandbox environment is a test key', async () => {
  const created = (await create({ name: 'x', env_id: organization.sandboxEnvironmentId })).json<Created>();
  expect(created.token).toMatch(/^ask_test_/);
  expect(created.env_id).toBe(organization.sandboxEnvironmentId);
});

test('a key cannot grant permissions it lacks', async () => {
  const permissions = ['keys:manage', 'inboxes:read'] as const;
  const { token } = await createKey(app.worker, { ...organization, permissions: [...permissions] });
  const problem = expectProblem(
    await create({ name: 'x', permissions: ['messages:send'] }, token),
    'permission_denied',
  );
  expect(problem.permission).toBe('messages:send');
  const keyWithDefaults = (await create({ name: 'x' }, token)).json<Created>();
  expect(keyWithDefaults.permissions).toEqual(['inboxes:read']);
});

test('a bound key creates keys only within its own binding', async () => {
  const inbox = await createInbox(app.worker, organization);
  const environmentId = organization.productionEnvironmentId;
  const environmentKey = await createKey(app.worker, { ...organization, environmentId });
  expect((await create({ name: 'x' }, environmentKey.token)).json()).toMatchObject({ env_id: environmentId });
  const sandbox = { name: 'x', env_id: organization.sandboxEnvironmentId };
  expectProblem(await create(sandbox, environmentKey.token), 'not_found');
  const inboxKey = await createKey(app.worker, { ...organization, environmentId, inboxId: inbox.id });
  expect((await create({ name: 'x' }, inboxKey.token)).json()).toMatchObject({ inbox_id: inbox.id });
  const other = await createInbox(app.worker, organization);
  expectProblem(await create({ name: 'x', inbox_id: other.id }, inboxKey.token), 'not_found');
  const list = await app.call('/api-keys', { token: inboxKey.token });
  const listed = list.json<{ data: Created[] }>().data;
  expect(listed.length).toBeGreaterThan(0);
  expect(new Set(listed.map(({ inbox_id }) => inbox_id))).toEqual(new Set([inbox.id]));
  expectProblem(await app.call(`/api-keys/${environmentKey.keyId}`, { token: inboxKey.token }), 'not_found');
});

test('an organization-wide key can bind a new key to an inbox of a given environment', async () => {
  const inbox = await createInbox(app.worker, organization, {
    environmentId: organization.sandboxEnvironmentId,
  });
  const named = { name: 'x', env_id: organization.sandboxEnvironmentId, inbox_id: inbox.id };
  expect((await create(named)).json()).toMatchObject({ inbox_id: inbox.id, env_id: inbox.environmentId });
  expectProblem(await create({ name: 'x', inbox_id: inbox.id }), 'not_found');
  expectProblem(await create({ name: 'x', env_id: newId('environment') }), 'not_found');
});

test('a revoked key is rejected from the next request on and no longer listed', async () => {
  const created = (await create({ name: 'x' })).json<Created>();
  const remove = () => app.call(`/api-keys/${created.id}`, { method: 'DELETE', token: organization.token });
  expect((await remove()).statusCode).toBe(204);
  expectProblem(await app.call('/inboxes', { token: created.token }), 'unauthenticated');
  expectProblem(await remove(), 'not_found');
  const list = await app.call('/api-keys?limit=100', { token: organization.token });
  expect(list.json<{ data: Created[] }>().data.map(({ id }) => id)).not.toContain(created.id);
});

test('unknown, expired, revoked and malformed credentials get the same response', async () => {
  const expired = await createKey(app.worker, { ...organization, expiresAt: new Date(Date.now() - 1) });
  const details = new Set<string>();
  for (const token of [createApiKeyToken('live'), expired.token, 'ask_live_short', 'nonsense'])
    details.add(
      JSON.stringify(expectProblem(await app.call('/inboxes', { token }), 'unauthenticated').detail),
    );
  expectProblem(await app.call('/inboxes'), 'unauthenticated');
  expectProblem(await app.call('/inboxes', { headers: { authorization: 'Basic eDp5' } }), 'unauthenticated');
  expect(details.size).toBe(1);
});

test('an expiry must be in the future', async () => {
  expectProblem(await create({ name: 'x', expires_at: '2020-01-01T00:00:00Z' }), 'validation_error');
  expectProblem(await create({ name: 'x', expires_at: '0000-01-01T00:00:00Z' }), 'validation_error');
  expectProblem(await create({ name: 'x', expires_at: 'tomorrow' }), 'validation_error');
  const created = (await create({ name: 'x', expires_at: '2190-01-01T00:00:00Z' })).json();
  expect(created).toMatchObject({ expires_at: '2190-01-01T00:00:00.000Z' });
});

test('a key that expires creates no key that outlives it', async () => {
  const expiresAt = new Date(Date.now() + 3_600_000);
  const { token } = await createKey(app.worker, { ...organization, expiresAt });
  const later = new Date(expiresAt.getTime() + 1).toISOString();
  expectProblem(await create({ name: 'x', expires_at: later }, token), 'permission_denied');
  const earlier = new Date(expiresAt.getTime() - 60_000).toISOString();
  expect((await create({ name: 'x', expires_at: earlier }, token)).json()).toMatchObject({
    expires_at: earlier,
  });
  const inherited = (await create({ name: 'x' }, token)).json();
  expect(inherited).toMatchObject({ expires_at: expiresAt.toISOString() });
  // Nor does a key of a key.
  expectProblem(await create({ name: 'x', expires_at: later }, inherited.token), 'permission_denied');
});

test('a key is revoked with the keys that it created, if asked', async () => {
  const maker = (await create({ name: 'maker', permissions: ['keys:manage'] })).json();
  const child = (await create({ name: 'child', permissions: ['keys:manage'] }, maker.token)).json();
  const grandchild = (await create({ name: 'grandchild', permissions: ['keys:manage'] }, child.token)).json();
  expect(grandchild).toMatchObject({ created_by_key_id: child.id });
  expect(child).toMatchObject({ created_by_key_id: maker.id });
  const works = async ({ token }: { token: string }) => (await app.call('/api-keys', { token })).statusCode;
  const revoke = (id: string, query = '') =>
    app.call(`/api-keys/${id}${query}`, { method: 'DELETE', token: organization.token });
  const other = (await create({ name: 'other', permissions: ['keys:manage'] }, maker.token)).json();
  expect((await revoke(other.id)).statusCode).toBe(204);
  expect(await Promise.all([maker, child, grandchild, other].map(works))).toEqual([200, 200, 200, 401]);
  expect((await revoke(maker.id, '?revoke_children=true')).statusCode).toBe(204);
  expect(await Promise.all([maker, child, grandchild].map(works))).toEqual([401, 401, 401]);
  expect(await works(organization)).toBe(200);
});

test('the last use is recorded asynchronously, once a minute', async () => {
  const { token, keyId } = await createKey(app.worker, organization);
  const lastUse = () =>
    app.worker.systemTransaction(
      async ({ db }) =>
        (
          await db
            .selectFrom('api_keys')
            .select(columnsOf(ApiKeyEntity))
            .where('id', '=', keyId)
            .executeTakeFirstOrThrow()
        ).lastUsedAt,
    );
  await app.call('/inboxes', { token });
  const first = await eventually(async () => {
    const at = await lastUse();
    expect(at).not.toBeNull();
    return at;
  });
  await app.call('/inboxes', { token });
  await app.call('/inboxes', { token });
  expect(await lastUse()).toEqual(first);
});

test('the list filters by the creating key and by last use, and a key says from where it was last used', async () => {
  const { organizationId } = await createOrganization(app.worker);
  const { token: owner, keyId } = await createKey(app.worker, { organizationId });
  const used = (await create({ name: 'used' }, owner)).json<Created>();
  const unused = (await create({ name: 'unused' }, owner)).json<Created>();
  const recent = (await create({ name: 'recent' }, owner)).json<Created>();
  await app.worker.db
    .updateTable('api_keys')
    .set({ created_at: new Date(Date.now() - 40 * 86_400_000) })
    .where('id', 'in', [used.id, unused.id])
    .execute();
  await app.call('/inboxes', { token: used.token });
  await eventually(async () =>
    expect((await app.call(`/api-keys/${used.id}`, { token: owner })).json()).toMatchObject({
      last_used_at: expect.any(String),
      last_used_from: '127.0.0.1',
    }),
  );
  const list = async (query: string) => {
    const response = await app.call(`/api-keys?order=asc&${query}`, { token: owner });
    return response.json<{ data: Created[] }>().data.map(({ id }) => id);
  };
  expect(await list(`created_by_key_id=${keyId}`)).toEqual([used.id, unused.id, recent.id]);
  const monthAgo = new Date(Date.now() - 30 * 86_400_000).toISOString();
  expect(await list(`last_used_before=${monthAgo}`)).toEqual([unused.id]);
  expectProblem(await app.call('/api-keys?last_used_before=x', { token: owner }), 'validation_error');
  // A rotated key is in use while clients use its old token.
  await app.worker.db
    .updateTable('api_keys')
    .set({ last_used_at: null, previous_last_used_at: new Date() })
    .where('id', '=', unused.id)
    .execute();
  expect(await list(`last_used_before=${monthAgo}`)).toEqual([]);
});
