import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '../../platform/ids.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp();
let organization: TestOrganization;
let inboxId: string;
let port: number;
beforeAll(async () => {
  await app.app.listen({ host: '127.0.0.1', port: 0 });
  port = (app.app.server.address() as AddressInfo).port;
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
});

const post = (path: string, call: Call) =>
  app.call(path, { method: 'POST', token: organization.token, ...call });
const JSON_TYPE = { 'content-type': 'application/json' };

describe('queries', () => {
  test.each([
    ['POST', '/drafts/drf_none/send'],
    ['POST', '/messages/msg_none/cancel'],
    ['GET', '/org'],
    ['GET', '/messages/msg_none'],
    ['DELETE', '/inboxes/inb_none'],
  ] as const)('%s %s rejects an unknown parameter', async (method, path) => {
    const call = { method, token: organization.token };
    const problem = expectProblem(await app.call(`${path}?retry=1`, call), 'validation_error');
    expect(problem.errors).toEqual([{ path: 'retry', message: expect.any(String) }]);
  });
});

describe('over a socket', () => {
  /** Sends 30 MiB as fast as the server reads them, and stops when a response arrives. */
  async function sendLargeBody(headers: Record<string, string | number>): Promise<{
    status: number | undefined;
    connection: string | undefined;
    body: string;
    writtenBytes: number;
  }> {
    const request = httpRequest({
      port,
      method: 'POST',
      path: '/api/v1/inboxes',
      headers: { ...JSON_TYPE, ...headers },
    });
    // The service closes the connection during the upload.
    request.on('error', () => undefined);
    let writtenBytes = 0;
    const chunk = Buffer.alloc(64 * 1024, 'x');
    const pump = (): void => {
      while (writtenBytes < LARGE_BODY_BYTES && !request.destroyed) {
        writtenBytes += chunk.length;
        if (!request.write(chunk)) return void request.once('drain', pump);
      }
    };
    pump();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const body = await text(response);
    request.destroy();
    return { status: response.statusCode, connection: response.headers.connection, body, writtenBytes };
  }

  const LARGE_BODY_BYTES = 30 * 1024 * 1024;

  test.each([
    ['with a Content-Length', { 'content-length': LARGE_BODY_BYTES }],
    ['in chunks', { 'transfer-encoding': 'chunked' }],
  ])('a body of 30 MiB %s is rejected without being read', async (_name, headers) => {
    const response = await sendLargeBody({ authorization: `Bearer ${organization.token}`, ...headers });
    expect(response).toMatchObject({ status: 413, connection: 'close' });
    expect(JSON.parse(response.body)).toMatchObject({ code: 'payload_too_large' });
    expect(response.writtenBytes).toBeLessThan(LARGE_BODY_BYTES);
  });

  test('a body of 30 MiB is not read if the credential is missing', async () => {
    const response = await sendLargeBody({ 'content-length': LARGE_BODY_BYTES });
    expect(response).toMatchObject({ status: 401, connection: 'close' });
    expect(response.writtenBytes).toBeLessThan(LARGE_BODY_BYTES);
  });

  test.each([
    ['too large', () => `Bearer ${organization.token}`, 413],
    ['without a credential', () => 'Bearer none', 401],
  ])(
    'a client that reads the response only after sending everything gets it: %s',
    async (_name, bearer, status) => {
      const bodyBytes = 12 * 1024 * 1024;
      const socket = connect({ port, host: '127.0.0.1' });
      socket.pause();
      socket.write(
        `POST /api/v1/inboxes HTTP/1.1\r\nhost: x\r\nauthorization: ${bearer()}\r\n` +
          `content-type: application/json\r\ncontent-length: ${bodyBytes}\r\n\r\n`,
      );
      const chunk = Buffer.alloc(1024 * 1024, 'x');
      const write = promisify<Buffer>(socket.write.bind(socket));
      for (let sent = 0; sent < bodyBytes; sent += chunk.length) await write(chunk);
      expect(await text(socket)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    },
  );

  test('a small rejected request keeps its connection', async () => {
    const { status, connection } = await sendUnauthenticated();
    expect({ status, connection }).toEqual({ status: 401, connection: 'keep-alive' });
  });

  async function sendUnauthenticated(): Promise<{
    status: number | undefined;
    connection: string | undefined;
  }> {
    const request = httpRequest({ port, method: 'POST', path: '/api/v1/inboxes', headers: JSON_TYPE });
    request.end('{}');
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    await text(response);
    return { status: response.statusCode, connection: response.headers.connection };
  }

  test('input that is not HTTP gets a problem document too', async () => {
    const socket = connect(port, '127.0.0.1');
    socket.end('NONSENSE\r\n\r\n');
    const response = await text(socket);
    expect(response).toMatch(/^HTTP\/1\.1 400 /);
    expect(response).toContain('application/problem+json');
    expect(JSON.parse(response.slice(response.indexOf('\r\n\r\n')))).toMatchObject({
      code: 'validation_error',
    });
  });
});

describe('paths and methods', () => {
  test('an unknown path is not found, with or without a credential', async () => {
    expectProblem(await app.call('/nowhere'), 'not_found');
    expectProblem(await app.call('/nowhere', { token: organization.token }), 'not_found');
    const post = { token: organization.token, method: 'POST' as const, body: { to: 'someone' } };
    expectProblem(await app.call('/nowhere', post), 'not_found');
    expectProblem(await app.call(`/inboxes/${'x'.repeat(400)}`, { token: organization.token }), 'not_found');
  });

  test('a trailing slash is ignored, and an empty id is not found', async () => {
    const { token } = organization;
    expect((await app.call('/inboxes/', { token })).json()).toMatchObject({ has_more: false });
    expect((await post('/inboxes/', { body: {} })).statusCode).toBe(201);
    expectProblem(await app.call('/inboxes//messages', { token }), 'not_found');
  });

  test('an unsupported method lists the supported ones', async () => {
    for (const method of ['PUT', 'DELETE', 'OPTIONS'] as const) {
      const response = await app.call('/inboxes', { method, token: organization.token });
      expectProblem(response, 'method_not_allowed');
      expect(response.headers.allow).toBe('GET, HEAD, POST');
    }
    const response = await app.call('/drafts/drf_x/send', { token: organization.token });
    expectProblem(response, 'method_not_allowed');
    expect(response.headers.allow).toBe('POST');
  });

  test.each([
    ['POST', '/health/live', 'GET, HEAD'],
    ['POST', '/openapi.json', 'GET, HEAD'],
    ['DELETE', '/docs/errors', 'GET, HEAD'],
    ['PUT', '/docs', 'GET, HEAD'],
    ['TRACE', '/health/live', 'GET, HEAD'],
    ['PROPFIND', '/api/v1/inboxes', 'GET, HEAD, POST'],
    ['QUERY', '/api/v1/messages/msg_none', 'GET, HEAD, DELETE'],
  ])('%s %s responds with the supported methods', async (method, path, allow) => {
    const raw = { body: '<x/>', type: 'application/xml' };
    const response = await sendRaw(method, path, raw);
    expect(response).toMatchObject({ status: 405, allow, code: 'method_not_allowed' });
  });

  test('an unknown path does not list methods', async () => {
    expect(await sendRaw('PROPFIND', '/api/v1/nowhere')).toMatchObject({ status: 404, code: 'not_found' });
    expect(await sendRaw('POST', '/nowhere')).toMatchObject({ status: 404, code: 'not_found' });
    expect(await sendRaw('POST', '/metrics')).toMatchObject({ status: 405, code: 'method_not_allowed' });
  });

  /** Uses a socket, because the injector supports only common methods. */
  async function sendRaw(
    method: string,
    path: string,
    { body = '', type = '' } = {},
  ): Promise<{ status: number | undefined; allow: string | undefined; code: unknown }> {
    const headers = type === '' ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(body) };
    const request = httpRequest({ port, method, path, headers });
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const { code } = JSON.parse(await text(response)) as { code: unknown };
    return { status: response.statusCode, allow: response.headers.allow, code };
  }

  test('a malformed path is rejected', async () => {
    expectProblem(await app.call('/inboxes/%zz', { token: organization.token }), 'validation_error');
  });

  test('HEAD responds like GET, without a body', async () => {
    const response = await app.call(`/inboxes/${inboxId}`, { method: 'HEAD', token: organization.token });
    expect([response.statusCode, response.body]).toEqual([200, '']);
  });
});

describe('request id', () => {
  test('every response has an id generated by the service, regardless of what the client sends', async () => {
    const ids = new Set<unknown>();
    for (const path of ['/inboxes', '/nowhere', '/inboxes/%zz']) {
      const response = await app.call(path, {
        token: organization.token,
        headers: { 'x-request-id': 'from-client' },
      });
      expect(response.headers['x-request-id']).toMatch(/^req_[0-9a-z]{26}$/);
      ids.add(response.headers['x-request-id']);
    }
    expect(ids.size).toBe(3);
  });
});

describe('permissions', () => {
  test('a missing permission is named', async () => {
    const { token } = await createKey(app.worker, { ...organization, permissions: ['inboxes:read'] });
    expect((await app.call('/inboxes', { token })).statusCode).toBe(200);
    const problem = expectProblem(await post('/inboxes', { token, body: {} }), 'permission_denied');
    expect(problem.permission).toBe('inboxes:write');
    expect(problem.fix).toContain('Use a key with the permission inboxes:write');
  });

  test('a key learns that only people may do something, and is not sent to look for another key', async () => {
    const approval = await post('/drafts/drf_none/approve', { body: { version: 1 } });
    expect(expectProblem(approval, 'permission_denied').fix).toContain(
      'API keys cannot have this permission',
    );
    for (const path of ['/user/me', '/admin/orgs'])
      expect(
        expectProblem(await app.call(path, { token: organization.token }), 'unauthenticated').detail,
      ).toContain('needs a session');
  });

  test('the id of another kind of resource is named as such', async () => {
    const problem = expectProblem(
      await app.call(`/messages/${inboxId}`, { token: organization.token }),
      'not_found',
    );
    expect(problem.detail).toBe(`${inboxId} is the id of an inbox, not of a message.`);
  });
});

describe('environments', () => {
  test('x-env-id selects an environment for an organization-wide key, not for a bound one', async () => {
    const sandbox = { 'x-env-id': organization.sandboxEnvironmentId };
    const created = await post('/inboxes', { body: {}, headers: sandbox });
    expect(created.json()).toMatchObject({ env_id: organization.sandboxEnvironmentId });
    const { token } = await createKey(app.worker, {
      ...organization,
      environmentId: organization.productionEnvironmentId,
    });
    expectProblem(await app.call('/inboxes', { token, headers: sandbox }), 'not_found');
  });

  describe('of a resource', () => {
    const inSandbox = async ({ token, sandboxEnvironmentId }: TestOrganization) => {
      const headers = { 'x-env-id': sandboxEnvironmentId };
      return (await post('/inboxes', { token, body: {}, headers })).json<{ id: string }>().id;
    };
    const suspend = (environmentId: string) =>
      app.worker.db
        .updateTable('environments')
        .set({ status: 'suspended' })
        .where('id', '=', environmentId)
        .execute();
    const sessionOf = async ({ ownerId }: TestOrganization) =>
      (await createTestSession(app.worker, ownerId)).token;

    test.each(['key', 'session'])('needs not be selected by an organization-wide %s', async (kind) => {
      const own = await createOrganization(app.worker);
      const inboxId = await inSandbox(own);
      const token = kind === 'key' ? own.token : await sessionOf(own);
      const reached = await app.call(`/inboxes/${inboxId}`, { token });
      expect(reached.json()).toMatchObject({ id: inboxId, env_id: own.sandboxEnvironmentId });
      const draft = await post(`/inboxes/${inboxId}/drafts`, { token, body: { subject: 'Below' } });
      expect(draft.statusCode).toBe(201);
      const draftId = draft.json<{ id: string }>().id;
      const changed = await app.call(`/drafts/${draftId}`, {
        method: 'PATCH',
        token,
        body: { to: [{ email: 'a@people.example' }] },
      });
      expect(changed.json()).toMatchObject({ id: draftId, to_addresses: ['a@people.example'] });
      const sent = await post(`/drafts/${draftId}/send`, { token });
      expect(sent.json()).toMatchObject({ env_id: own.sandboxEnvironmentId });
      for (const path of [`/messages/${sent.json().id}`, `/threads/${sent.json().thread_id}`])
        expect((await app.call(path, { token })).statusCode).toBe(200);
      const list = await app.call(`/inboxes/${inboxId}/messages`, { token });
      expect(list.json<{ data: unknown[] }>().data).toHaveLength(1);
      // Lists that are not below a resource show one environment.
      expect((await app.call('/messages', { token })).json()).toMatchObject({ data: [] });
    });

    test('is not found if the request selects another one', async () => {
      const own = await createOrganization(app.worker);
      const inboxId = await inSandbox(own);
      const headers = { 'x-env-id': own.productionEnvironmentId };
      for (const token of [own.token, await sessionOf(own)])
        expectProblem(await app.call(`/inboxes/${inboxId}`, { token, headers }), 'not_found');
    });

    test('decides whether the resource can be changed', async () => {
      const own = await createOrganization(app.worker);
      const { token } = own;
      const inboxId = await inSandbox(own);
      const elsewhere = (await post('/inboxes', { token, body: {} })).json<{ id: string }>().id;
      await suspend(own.sandboxEnvironmentId);
      expectProblem(await post(`/inboxes/${inboxId}/drafts`, { token, body: {} }), 'environment_suspended');
      expect((await app.call(`/inboxes/${inboxId}`, { token })).statusCode).toBe(200);
      expect((await post(`/inboxes/${elsewhere}/drafts`, { token, body: {} })).statusCode).toBe(201);
    });

    test('is used whatever the state of production', async () => {
      const own = await createOrganization(app.worker);
      const inboxId = await inSandbox(own);
      await suspend(own.productionEnvironmentId);
      const draft = await post(`/inboxes/${inboxId}/drafts`, { token: own.token, body: {} });
      expect(draft.statusCode).toBe(201);
    });

    test('is not revealed to another organization', async () => {
      const inboxId = await inSandbox(await createOrganization(app.worker));
      const { token } = await createOrganization(app.worker);
      expectProblem(await app.call(`/inboxes/${inboxId}`, { token }), 'not_found');
    });
  });

  test.each(['env_x', newId('environment'), 'x\u00e9', "' or true --"])(
    'x-env-id %j is not found',
    async (environmentId) => {
      const call = { token: organization.token, headers: { 'x-env-id': environmentId } };
      expectProblem(await app.call('/inboxes', call), 'not_found');
    },
  );

  test("another organization's environment is not found", async () => {
    const otherOrganization = await createOrganization(app.worker);
    const call = {
      token: organization.token,
      headers: { 'x-env-id': otherOrganization.productionEnvironmentId },
    };
    expectProblem(await app.call('/inboxes', call), 'not_found');
  });
});

describe('suspension', () => {
  test('a suspended organization can read but not change anything', async () => {
    const suspended = await createOrganization(app.worker);
    await app.worker.db
      .updateTable('organizations')
      .set({ status: 'suspended' })
      .where('id', '=', suspended.organizationId)
      .execute();
    expect((await app.call('/inboxes', suspended)).statusCode).toBe(200);
    expectProblem(await post('/inboxes', { token: suspended.token, body: {} }), 'organization_suspended');
  });

  test('a suspended environment is read-only, others are not', async () => {
    const { token, sandboxEnvironmentId } = await createOrganization(app.worker);
    await app.worker.db
      .updateTable('environments')
      .set({ status: 'suspended' })
      .where('id', '=', sandboxEnvironmentId)
      .execute();
    const headers = { 'x-env-id': sandboxEnvironmentId };
    expect((await app.call('/inboxes', { token, headers })).statusCode).toBe(200);
    expectProblem(await post('/inboxes', { token, headers, body: {} }), 'environment_suspended');
    expect((await post('/inboxes', { token, body: {} })).statusCode).toBe(201);
  });
});

describe('a key of a suspended inbox', () => {
  test('can read, but change nothing, also beside the inbox', async () => {
    const own = await createOrganization(app.worker);
    const inbox = await createInbox(app.worker, own);
    const { token } = await createKey(app.worker, {
      ...own,
      environmentId: own.productionEnvironmentId,
      inboxId: inbox.id,
    });
    await app.worker.db
      .updateTable('inboxes')
      .set({ status: 'suspended' })
      .where('id', '=', inbox.id)
      .execute();
    for (const path of ['/suppressions', '/lists/send/block', '/webhooks/endpoints', `/inboxes/${inbox.id}`])
      expect((await app.call(path, { token })).statusCode).toBe(200);
    const url = 'https://receiver.example/hook';
    const changes: [path: string, body: object][] = [
      ['/webhooks/endpoints', { url, events: ['message.received'] }],
      ['/suppressions', { email: 'a@people.example' }],
      ['/lists/send/block', { entry: 'people.example' }],
      [`/inboxes/${inbox.id}/drafts`, {}],
    ];
    for (const [path, body] of changes) expectProblem(await post(path, { token, body }), 'inbox_suspended');
    expect((await post('/suppressions', { token: own.token, body: changes[1]?.[1] })).statusCode).toBe(201);
  });
});

describe('organization', () => {
  test('can be read with its environments', async () => {
    const { token } = organization;
    expect((await app.call('/org', { token })).json()).toMatchObject({ id: organization.organizationId });
    const list = await app.call('/org/environments?order=asc', { token });
    expect(list.json<{ data: { kind: string }[] }>().data.map(({ kind }) => kind)).toEqual([
      'production',
      'sandbox',
    ]);
  });
});
