import { request as httpRequest } from 'node:http';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { connectTools, REVISIONS, toolsUrl } from '../support/mcp-client.ts';
import { createKey, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';

const app = useTestApp({ config: { MCP_ALLOWED_ORIGINS: 'https://host.example' } });
let organization: TestOrganization;
let url: URL;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  url = await toolsUrl(app);
});

interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** A request as a client with errors might send it: `fetch` sets Host and Origin itself. */
function send(
  headers: Record<string, string>,
  body: string | Buffer,
  { method = 'POST', path = url.pathname } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: url.hostname, port: url.port, path, method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString(),
        }),
      );
    });
    request.on('error', reject);
    request.end(body);
  });
}

const ping = (extra: object = {}) => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', ...extra });
const headersOf = (extra: Record<string, string> = {}) => ({
  authorization: `Bearer ${organization.token}`,
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  ...extra,
});

describe.each(REVISIONS)('a host that speaks %s', (revision) => {
  test('connects, lists the tools and calls one', async () => {
    const tools = await connectTools(app, organization.token, { revision });
    expect(await tools.names()).toContain('whoami');
    const { answer, text, isError } = await tools.call('whoami');
    expect({ isError, kind: answer.kind, id: answer.id }).toEqual({
      isError: false,
      kind: 'api_key',
      id: organization.keyId,
    });
    expect(JSON.parse(text)).toEqual(answer);
    await tools.close();
  });

  test('is told that a tool does not exist', async () => {
    const tools = await connectTools(app, organization.token, { revision });
    await expect(tools.call('approve_draft')).rejects.toThrow('Unknown tool: approve_draft');
    await tools.close();
  });
});

describe('a credential', () => {
  test('is required, and a refusal says how to send it', async () => {
    const { authorization: _key, ...headers } = headersOf();
    const { status, headers: answered, body } = await send(headers, ping());
    expect(status).toBe(401);
    expect(answered['www-authenticate']).toMatch(/^Bearer/);
    expect(JSON.parse(body)).toMatchObject({ code: 'unauthenticated', fix: expect.any(String) });
  });

  test('of a person is refused, as header and as cookie', async () => {
    const { token } = await createTestSession(app.worker, organization.ownerId);
    expect((await send(headersOf({ authorization: `Bearer ${token}` }), ping())).status).toBe(401);
    const { authorization: _key, ...headers } = headersOf();
    expect((await send({ ...headers, cookie: `session=${token}` }, ping())).status).toBe(401);
  });

  test('in the query is refused, also beside one in the header', async () => {
    const path = `/mcp?access_token=${organization.token}`;
    const { authorization: _key, ...headers } = headersOf();
    expect((await send(headers, ping(), { path })).status).toBe(401);
    expect((await send(headersOf(), ping(), { path })).status).toBe(400);
  });
});

describe('a host name and an origin', () => {
  test.each(['localhost', '127.0.0.1:8080', '[::1]:3000'])('of this machine is its own: %s', async (host) => {
    expect((await send(headersOf({ host }), ping())).status).toBe(200);
  });

  test('of others are refused, before anything of the message is read', async () => {
    for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example:3000', '@'])
      expect({ host, status: (await send(headersOf({ host }), ping())).status }).toEqual({
        host,
        status: 403,
      });
    for (const origin of ['https://evil.example', 'null', 'http://localhost.evil.example', 'file://'])
      expect({ origin, status: (await send(headersOf({ origin }), ping())).status }).toEqual({
        origin,
        status: 403,
      });
  });

  test('that the operator allows may call', async () => {
    for (const origin of ['https://host.example', 'http://localhost:6274', app.config.PUBLIC_URL])
      expect({ origin, status: (await send(headersOf({ origin }), ping())).status }).toEqual({
        origin,
        status: 200,
      });
  });
});

describe('a web page', () => {
  const preflight = (origin: string) =>
    send({ origin, 'access-control-request-method': 'POST' }, '', { method: 'OPTIONS' });

  test('of an allowed origin may call, and read the answer, also a refusal', async () => {
    const origin = 'https://host.example';
    const { status, headers } = await preflight(origin);
    expect({ status, origin: headers['access-control-allow-origin'] }).toEqual({ status: 204, origin });
    expect(headers['access-control-allow-headers']).toContain('authorization');
    expect(headers['access-control-allow-credentials']).toBeUndefined();
    const { authorization: _key, ...anonymous } = headersOf({ origin });
    for (const answered of [await send(headersOf({ origin }), ping()), await send(anonymous, ping())])
      expect(answered.headers).toMatchObject({ 'access-control-allow-origin': origin, vary: 'origin' });
  });

  test('of another origin may not', async () => {
    const { status, headers } = await preflight('https://evil.example');
    expect({ status, origin: headers['access-control-allow-origin'] }).toEqual({
      status: 403,
      origin: undefined,
    });
    const answered = await send(headersOf({ origin: 'https://evil.example' }), ping());
    expect(answered.headers['access-control-allow-origin']).toBeUndefined();
  });
});

describe('a message made to harm', () => {
  const callWith = (args: string) =>
    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_messages","arguments":${args}}}`;

  test.each([
    ['nested deeply', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ['nested deeply in a field', `{"q":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}`],
    ['with many fields', `{${Array.from({ length: 100_000 }, (_, index) => `"f${index}":1`).join()}}`],
    ['with the name of a prototype', '{"__proto__":{"limit":1},"constructor":{"prototype":{}}}'],
    ['with a number beyond all', '{"limit":1e999}'],
    ['with half a character', '{"from":"\\ud800"}'],
    ['with NUL', '{"from":"\\u0000"}'],
  ])('%s is refused, and harms no other', async (_kind, args) => {
    const { status, body } = await send(headersOf(), callWith(args));
    expect(status).toBeLessThan(500);
    expect(body).toMatch(/validation_error|"error":\{/);
    expect((await send(headersOf(), ping())).status).toBe(200);
  });
});

describe('a request that is no message', () => {
  test('is refused without a session to read or end', async () => {
    for (const method of ['GET', 'DELETE', 'PUT']) {
      const { status, headers } = await send(headersOf(), '', { method });
      expect({ method, status, allow: headers.allow }).toEqual({
        method,
        status: 405,
        allow: 'POST, OPTIONS',
      });
    }
  });

  test('of 10 MB is refused before it is read', async () => {
    const { status } = await send(headersOf({ 'content-length': '10000000' }), Buffer.alloc(10_000_000, 32));
    expect(status).toBe(413);
  });

  test.each(['', '{', '"text"', 'null', '7', '[]', '\u0000'])(
    'of the body %j is a client error',
    async (body) => {
      const { status } = await send(headersOf(), body);
      expect({ body, isClientError: status >= 400 && status < 500 }).toEqual({ body, isClientError: true });
    },
  );

  test('of several messages is refused, so that a call is counted and limited once', async () => {
    const { status, body } = await send(headersOf(), `[${ping()},${ping({ id: 2 })}]`);
    expect({ status, error: JSON.parse(body).error.code }).toEqual({ status: 400, error: -32600 });
  });

  test('in another format, version or with a header that contradicts its body is refused', async () => {
    expect((await send(headersOf({ 'content-type': 'text/plain' }), ping())).status).toBe(415);
    expect((await send(headersOf({ 'mcp-protocol-version': '1999-01-01' }), ping())).status).toBe(400);
    expect((await send(headersOf({ 'mcp-protocol-version': '2026-07-28' }), ping())).status).toBe(400);
  });
});

describe('the list of tools', () => {
  test('has what the key permits, in the same order', async () => {
    const full = await connectTools(app, organization.token);
    const all = await full.names();
    const { token } = await createKey(app.worker, {
      organizationId: organization.organizationId,
      permissions: ['messages:read'],
    });
    const limited = await connectTools(app, token);
    const some = await limited.names();
    expect(some).toEqual(all.filter((name) => some.includes(name)));
    expect(some).toEqual(expect.arrayContaining(['whoami', 'get_message']));
    expect(some).not.toEqual(expect.arrayContaining(['create_inbox']));
    expect(await full.names()).toEqual(all);
    await Promise.all([full.close(), limited.close()]);
  });

  test('hides a tool but refuses its call by the permission of its operation', async () => {
    const { token } = await createKey(app.worker, {
      organizationId: organization.organizationId,
      permissions: ['messages:read'],
    });
    const tools = await connectTools(app, token);
    const { isError, answer } = await tools.call('create_inbox');
    expect(isError).toBe(true);
    expect(answer).toMatchObject({
      code: 'permission_denied',
      permission: 'inboxes:write',
      fix: expect.any(String),
    });
    await tools.close();
  });
});
