import { beforeEach, expect, test } from '@jest/globals';
import Fastify, { type FastifyInstance } from 'fastify';
import { sql } from 'kysely';
import { installErrors } from '../../api/plugins/error-responses.ts';
import { installIdempotency } from '../../api/plugins/idempotent-routes.ts';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { createSecretBox } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { AppError } from '../../platform/errors.ts';
import { IdempotencyKeyEntity } from '../../platform/idempotency/idempotency-key.entity.ts';
import { createIdempotencyStore } from '../../platform/idempotency/idempotency-store.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { countRows, query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';

const app = useTestApp();
let organization: TestOrganization;
let inboxId: string;
beforeEach(async () => {
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
});

const post = (path: string, key: string, body: unknown, token = organization.token) =>
  app.call(path, { method: 'POST', token, body, headers: { 'idempotency-key': key } });
const send = (key: string, body: unknown = { to: [{ email: 'someone@example.test' }], subject: 'Once' }) =>
  post(`/inboxes/${inboxId}/messages`, key, body);
const countMessages = () =>
  countRows(app.worker.db.selectFrom('messages').select('id').where('inbox_id', '=', inboxId));

test('a repeated request gets the same bytes and changes nothing', async () => {
  app.commands.length = 0;
  const first = await send('a');
  const second = await send('a');
  expect([first.statusCode, second.statusCode]).toEqual([201, 201]);
  expect(second.body).toBe(first.body);
  expect(second.headers['content-type']).toBe(first.headers['content-type']);
  expect(first.headers['idempotent-replayed']).toBeUndefined();
  expect(second.headers['idempotent-replayed']).toBe('true');
  expect(await countMessages()).toBe(1);
  expect(app.commands).toHaveLength(1);
});

test('the response equals that of a request without a key', async () => {
  const plain = await app.call(`/inboxes/${inboxId}/drafts`, {
    method: 'POST',
    token: organization.token,
    body: {},
  });
  const keyed = await post(`/inboxes/${inboxId}/drafts`, 'd', {});
  expect(Object.keys(keyed.json())).toEqual(Object.keys(plain.json()));
  expect(keyed.headers.etag).toBe(plain.headers.etag);
  const { id } = keyed.json<{ id: string }>();
  expect((await app.call(`/drafts/${id}`, { token: organization.token })).json()).toEqual(keyed.json());
});

test('another body under the same key is rejected, and the first response stays stored', async () => {
  const first = await send('b');
  expectProblem(await send('b', { to: [{ email: 'other@example.test' }] }), 'idempotency_key_reused');
  expect((await send('b')).body).toBe(first.body);
});

test('a key is scoped to its credential, path and environment', async () => {
  const { token } = await createKey(app.worker, organization);
  const ids = new Set<string>();
  for (const response of [
    await post('/inboxes', 'c', {}),
    await post('/inboxes', 'c', {}, token),
    await post('/api-keys', 'c', { name: 'x' }),
  ]) {
    expect(response.statusCode).toBe(201);
    ids.add(response.json<{ id: string }>().id);
  }
  expect(ids.size).toBe(3);
  const elsewhere = await app.call('/inboxes', {
    method: 'POST',
    token: organization.token,
    body: {},
    headers: { 'idempotency-key': 'c', 'x-env-id': organization.sandboxEnvironmentId },
  });
  expectProblem(elsewhere, 'idempotency_key_reused');
});

test('a person uses one key in two organizations, for two requests', async () => {
  const other = await createOrganization(app.worker);
  await query(
    app.worker,
    sql`insert into members (org_id, user_id, role, created_at)
    values (${other.organizationId}, ${organization.ownerId}, 'owner', now()) returning org_id`,
  );
  const { token } = await createTestSession(app.worker, organization.ownerId, { factors: ['totp'] });
  const create = (organizationId: string) =>
    app.call('/inboxes', {
      method: 'POST',
      token,
      body: {},
      headers: { 'idempotency-key': 'two', 'x-org-id': organizationId },
    });
  const first = await create(organization.organizationId);
  const second = await create(other.organizationId);
  expect([first.statusCode, second.statusCode]).toEqual([201, 201]);
  expect(second.json<{ id: string }>().id).not.toBe(first.json<{ id: string }>().id);
  expect((await create(organization.organizationId)).body).toBe(first.body);
  expect((await create(other.organizationId)).body).toBe(second.body);
});

test('the query string and the encoding of the path do not distinguish requests', async () => {
  const server = await startRejectingApp();
  const headers = { 'idempotency-key': 'query' };
  const first = await server.app.inject({ method: 'POST', url: '/change', headers });
  for (const url of ['/change?retry=1', '/change#again', '/%63hange']) {
    const repeat = await server.app.inject({ method: 'POST', url, headers });
    expect(repeat.headers['idempotent-replayed']).toBe('true');
    expect(repeat.body).toBe(first.body);
  }
  expect(server.runs()).toBe(1);
  await server.app.close();
});

test('one of ten concurrent requests runs; the others conflict or get its response', async () => {
  const responses = await Promise.all(Array.from({ length: 10 }, () => send('race')));
  const [running, answered] = [409, 201].map((status) =>
    responses.filter(({ statusCode }) => statusCode === status),
  ) as [typeof responses, typeof responses];
  expect(running.length + answered.length).toBe(10);
  for (const response of running) expectProblem(response, 'request_in_progress');
  expect(new Set(answered.map(({ body }) => body)).size).toBe(1);
  expect(answered.filter(({ headers }) => headers['idempotent-replayed'] === undefined)).toHaveLength(1);
  expect(await countMessages()).toBe(1);
});

test('a rejection is stored with its request id', async () => {
  await createInbox(app.worker, organization, { username: `taken-${inboxId.slice(-10)}` });
  const body = { username: `taken-${inboxId.slice(-10)}` };
  const first = await post('/inboxes', 'e', body);
  expectProblem(first, 'already_exists');
  const second = await post('/inboxes', 'e', body);
  expect(second.body).toBe(first.body);
  expect(second.headers['idempotent-replayed']).toBe('true');
  expect(second.headers['x-request-id']).not.toBe(first.headers['x-request-id']);
});

/** Starts an app with a route that changes data, starts a workflow, and then rejects the request. */
async function startRejectingApp(): Promise<{ app: FastifyInstance; started: string[]; runs: () => number }> {
  const started: string[] = [];
  let runs = 0;
  const server = Fastify();
  installErrors(server, { publicUrl: 'http://api.test', operations: { find: async () => undefined } });
  server.decorateRequest('scope');
  server.addHook('onRequest', async (request) => {
    request.scope = {
      organizationId: organization.organizationId,
      environmentId: organization.productionEnvironmentId,
      environmentBound: true,
      permissions: new Set(),
      actor: { kind: 'api_key', id: organization.keyId },
      requestId: request.id,
    };
  });
  const secretBox = createSecretBox(app.config.ENCRYPTION_KEY);
  installIdempotency(server, {
    database: app.database,
    store: createIdempotencyStore({ secretBox }),
    publicUrl: 'http://api.test',
  });
  server.post('/change', ({ scope }) =>
    app.database.transaction(scope, async ({ db, afterCommit }) => {
      runs += 1;
      afterCommit(() => started.push('a workflow'));
      await db.updateTable('inboxes').set({ display_name: 'half done' }).where('id', '=', inboxId).execute();
      throw new AppError('conflict', { detail: 'No.', fix: 'None.' });
    }),
  );
  await server.ready();
  return { app: server, started, runs: () => runs };
}

test('a rejection rolls back its changes, starts nothing and is not retried', async () => {
  const server = await startRejectingApp();
  const headers = { 'idempotency-key': 'k' };
  const first = await server.app.inject({ method: 'POST', url: '/change', headers });
  const second = await server.app.inject({ method: 'POST', url: '/change', headers });
  expect([first.statusCode, second.statusCode]).toEqual([409, 409]);
  expect(second.body).toBe(first.body);
  expect(second.headers['idempotent-replayed']).toBe('true');
  expect(server.runs()).toBe(1);
  expect(server.started).toEqual([]);
  const inbox = await app.call(`/inboxes/${inboxId}`, { token: organization.token });
  expect(inbox.json()).toMatchObject({ display_name: null });
  await server.app.close();
});

test('a rejection that must be recorded is recorded once', async () => {
  await app.worker.db
    .updateTable('inboxes')
    .set({ send_paused: true, send_paused_reason: 'Bounces' })
    .where('id', '=', inboxId)
    .execute();
  const first = await send('f');
  expectProblem(first, 'message_rejected');
  expect((await send('f')).body).toBe(first.body);
  const rejected = await countRows(
    app.worker.db
      .selectFrom('events')
      .select('id')
      .where('inbox_id', '=', inboxId)
      .where('type', '=', 'message.rejected'),
  );
  expect(rejected).toBe(1);
});

test('a rejection that may change later is recorded, but a repeated request runs again', async () => {
  const setStatus = (status: 'active' | 'suspended') =>
    app.worker.db.updateTable('inboxes').set({ status }).where('id', '=', inboxId).execute();
  await setStatus('suspended');
  expectProblem(await send('s'), 'inbox_suspended');
  const { token } = organization;
  expect((await app.call('/metrics/summary', { token })).json()).toMatchObject({ rejected: 1 });
  const events = await app.worker.db
    .selectFrom('events')
    .select(columnsOf(EventEntity))
    .where('inbox_id', '=', inboxId)
    .execute();
  expect(events).toMatchObject([{ type: 'message.rejected', data: { rejection_reason: 'account_paused' } }]);
  await setStatus('active');
  expect((await send('s')).statusCode).toBe(201);
});

test('401, 403 and invalid requests are not stored', async () => {
  const { token, keyId } = await createKey(app.worker, { ...organization, permissions: ['keys:manage'] });
  const grant = { name: 'x', permissions: ['messages:send'] };
  expectProblem(await post('/api-keys', 'g', grant, token), 'permission_denied');
  expectProblem(await post('/api-keys', 'g', { nam: 'x' }, token), 'validation_error');
  expect((await post('/api-keys', 'g', { name: 'x' }, token)).statusCode).toBe(201);
  const stored = await countRows(
    app.worker.db
      .selectFrom('idempotency_keys')
      .select('id')
      .where('org_id', '=', organization.organizationId),
  );
  expect({ keyId, stored }).toEqual({ keyId, stored: 1 });
});

test('a suspended environment rejects a repeated request like any other change', async () => {
  await post('/inboxes', 'h', {});
  await app.worker.db
    .updateTable('environments')
    .set({ status: 'suspended' })
    .where('id', '=', organization.productionEnvironmentId)
    .execute();
  expectProblem(await post('/inboxes', 'h', {}), 'environment_suspended');
});

test('a key can be used again after 24 hours', async () => {
  const first = await send('i');
  await app.worker.db
    .updateTable('idempotency_keys')
    .set({ created_at: new Date(Date.now() - 24 * 3_600_000) })
    .where('org_id', '=', organization.organizationId)
    .execute();
  const second = await send('i', { to: [{ email: 'new@example.test' }] });
  expect(second.statusCode).toBe(201);
  expect(second.json<{ id: string }>().id).not.toBe(first.json<{ id: string }>().id);
});

test('the stored response is encrypted at rest', async () => {
  const created = await post('/api-keys', 'j', { name: 'x' });
  const { token } = created.json<{ token: string }>();
  expect((await post('/api-keys', 'j', { name: 'x' })).json()).toMatchObject({ token });
  await app.worker.systemTransaction(async ({ db }) => {
    const [row] = await db
      .selectFrom('idempotency_keys')
      .select(columnsOf(IdempotencyKeyEntity))
      .where('org_id', '=', organization.organizationId)
      .execute();
    expect(Buffer.from(row?.body ?? []).toString('latin1')).not.toContain(token);
  });
});

test.each(['', ' '.repeat(256), 'x'.repeat(256), 'kéy'])('rejects the key %j', async (key) => {
  const response = await send(key);
  expectProblem(response, 'validation_error');
});
