import { inspect } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from '@jest/globals';
import {
  AgentEmail,
  AgentEmailError,
  APIError,
  type ClientOptions,
  ConnectionError,
  NotFoundError,
  RateLimitedError,
  TimeoutError,
  UsageLimitExceededError,
} from '../../clients/typescript/src/index.ts';
import { answerJson, problem, type Reply, ScriptedServer } from '../support/scripted-server.ts';
import { TIME_FACTOR } from '../support/time-factor.ts';

const INBOX = { object: 'inbox', id: 'inb_1', email: 'a@mail.example' };
const TO = { to: ['ada@people.example'], text_body: 'Hello' };

async function start(reply: Reply, options: ClientOptions = {}) {
  const server = await ScriptedServer.start(reply);
  const client = new AgentEmail({ apiKey: 'ask_secret', baseUrl: server.url, ...options });
  return { server, client, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

const failureOf = (promise: PromiseLike<unknown>): Promise<Error> =>
  Promise.resolve(promise).then(
    () => {
      throw new Error('It should have failed');
    },
    (error: Error) => error,
  );

describe('a request', () => {
  test('has the key, path, query and body, and one new Idempotency-Key a call', async () => {
    await using run = await start((response) =>
      answerJson(response, 201, { object: 'message', id: 'msg_1' }),
    );
    const { client, server } = run;
    await client.messages.send('inb/1', { ...TO, view: 'agent' });
    await client.messages.send('inb/1', { ...TO, cc: undefined });
    await client.messages.send('inb/1', TO, { idempotencyKey: 'mine', envId: 'env_1' });
    const [first, second, third] = server.received;
    expect(first).toMatchObject({
      method: 'POST',
      url: '/api/v1/inboxes/inb%2F1/messages?view=agent',
      headers: { authorization: 'Bearer ask_secret', 'content-type': 'application/json' },
    });
    expect(first?.headers['user-agent']).toMatch(/^agent-email-typescript\/\d/);
    expect([first?.body, second?.body].map((body) => JSON.parse(body ?? ''))).toEqual([TO, TO]);
    expect(first?.headers['idempotency-key']).toMatch(/^[\da-f-]{36}$/);
    expect(second?.headers['idempotency-key']).not.toBe(first?.headers['idempotency-key']);
    expect(third?.headers).toMatchObject({ 'idempotency-key': 'mine', 'x-env-id': 'env_1' });
  });

  test('an operation that can be repeated sends no Idempotency-Key, and takes none', async () => {
    await using run = await start((response) => answerJson(response, 200, INBOX));
    await run.client.inboxes.update('inb_1', { display_name: 'A' });
    expect(run.server.received[0]?.headers['idempotency-key']).toBeUndefined();
    const error = await failureOf(run.client.inboxes.update('inb_1', {}, { idempotencyKey: 'a' }));
    expect(error).toBeInstanceOf(TypeError);
  });

  test('parameters of headers are sent as headers', async () => {
    await using run = await start((response) => answerJson(response, 200, { object: 'draft' }));
    await run.client.drafts.update('drf_1', { subject: 'A', if_match: '"3"' });
    const [request] = run.server.received;
    expect(request?.headers['if-match']).toBe('"3"');
    expect(request?.body).toBe('{"subject":"A"}');
  });

  test.each(['', '.', '..'])('the id %j is refused before it changes the path', async (id) => {
    const client = new AgentEmail({ apiKey: 'ask_secret', baseUrl: 'http://localhost' });
    expect(() => client.messages.delete(id)).toThrow(TypeError);
  });

  test('a redirect is an error that the key does not follow', async () => {
    await using other = await ScriptedServer.start((response) => answerJson(response, 200, INBOX));
    await using run = await start((response) =>
      response.writeHead(307, { location: `${other.url}/x` }).end(),
    );
    const error = await failureOf(run.client.inboxes.get('inb_1'));
    expect(error.message).toContain(other.url);
    expect(other.received).toEqual([]);
    expect(run.server.received).toHaveLength(1);
  });

  test('a file is sent as a form', async () => {
    await using run = await start((response) =>
      answerJson(response, 201, { object: 'attachment', id: 'att_1' }),
    );
    const small = { filename: 'a.txt', content: 'small', content_type: 'text/plain' };
    const large = new File([new Uint8Array(1_100_000)], 'b.bin');
    expect(await run.client.attach('inb_1', [small, large])).toEqual([
      { filename: 'a.txt', content: 'c21hbGw=', content_type: 'text/plain' },
      { attachment_id: 'att_1' },
    ]);
    const [upload, ...others] = run.server.received;
    expect(others).toEqual([]);
    expect(upload?.headers['content-type']).toMatch(/^multipart\/form-data; boundary=/);
    expect(upload?.headers['idempotency-key']).toBeDefined();
    expect(upload?.body).toContain('filename="b.bin"');
  });

  test('each uploaded file has a key of its own, which a repeat derives again', async () => {
    await using run = await start((response) =>
      answerJson(response, 201, { object: 'attachment', id: 'att_1' }),
    );
    const files = ['a', 'b', 'c'].map((filename, index) => ({
      filename,
      content: new Uint8Array(index === 1 ? 5 : 1_100_000),
    }));
    await run.client.attach('inb_1', files, { idempotencyKey: 'report-1', maxRetries: 0 });
    await run.client.attach('inb_1', files, { idempotencyKey: 'report-1' });
    const keys = run.server.received.map(({ headers }) => headers['idempotency-key']);
    expect(keys).toEqual(['report-1:file-1', 'report-1:file-3', 'report-1:file-1', 'report-1:file-3']);
  });

  test('withResponse has the status, the headers and the request id', async () => {
    await using run = await start((response) => answerJson(response, 201, INBOX, { 'x-more': 'yes' }));
    const { data, response, requestId } = await run.client.inboxes.create({}).withResponse();
    expect(data).toEqual(INBOX);
    expect([response.status, response.headers.get('x-more'), requestId]).toEqual([201, 'yes', 'req_test']);
  });

  test('unknown fields and values are kept', async () => {
    const answer = { ...INBOX, status: 'a new status', new_field: { nested: [1] } };
    await using run = await start((response) => answerJson(response, 200, answer));
    expect(await run.client.inboxes.get('inb_1')).toEqual(answer);
  });

  test('answers without content and texts', async () => {
    await using run = await start((response, { method }) =>
      method === 'DELETE'
        ? response.writeHead(204).end()
        : response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end('a. IN TXT "ü"'),
    );
    expect(await run.client.messages.delete('msg_1')).toBeUndefined();
    expect(await run.client.domains.zoneFile('dom_1')).toBe('a. IN TXT "ü"');
  });
});

describe('an error', () => {
  test('has a class by its code, and what the service says', async () => {
    const body = problem(404, 'not_found', { nearest_operation: 'GET /inboxes' });
    await using run = await start((response) => answerJson(response, 404, body));
    const error = await failureOf(run.client.inboxes.get('inb_1'));
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toBeInstanceOf(APIError);
    expect(error).toMatchObject({
      name: 'NotFoundError',
      status: 404,
      code: 'not_found',
      fix: 'Fix of not_found.',
      requestId: 'req_problem',
      problem: body,
    });
    expect(error.message).toBe('Detail of not_found. Fix of not_found. (not_found, req_problem)');
  });

  test('an unknown code is kept', async () => {
    await using run = await start((response) => answerJson(response, 418, problem(418, 'brand_new')));
    const error = await failureOf(run.client.inboxes.get('inb_1'));
    expect(error.constructor).toBe(APIError);
    expect(error).toMatchObject({ status: 418, code: 'brand_new' });
  });

  test.each([
    ['a page of a proxy', 403, 'text/html', '<h1>Forbidden</h1>', APIError],
    ['a website instead of the service', 200, 'text/html', '<h1>Welcome</h1>', ConnectionError],
    ['JSON that was cut', 200, 'application/json', '{"object": "inb', ConnectionError],
  ])('%s', async (_, status, type, body, expected) => {
    await using run = await start(
      (response) => response.writeHead(status, { 'content-type': type }).end(body),
      {
        maxRetries: 0,
      },
    );
    expect(await failureOf(run.client.inboxes.get('inb_1'))).toBeInstanceOf(expected);
  });
});

describe('a retry', () => {
  test('after a broken connection repeats the same key and body', async () => {
    await using run = await start((response, _request, number) =>
      number < 3 ? response.destroy() : answerJson(response, 201, { object: 'message', id: 'msg_1' }),
    );
    expect(await run.client.messages.send('inb_1', TO)).toMatchObject({ id: 'msg_1' });
    const keys = run.server.received.map(({ headers, body }) => `${headers['idempotency-key']} ${body}`);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
  });

  test('after an answer that breaks off', async () => {
    await using run = await start((response, _request, number) => {
      if (number > 1) return answerJson(response, 200, INBOX);
      response
        .writeHead(200, { 'content-type': 'application/json', 'content-length': 100 })
        .write('{"object"');
      setTimeout(() => response.destroy(), 20);
    });
    expect(await run.client.inboxes.get('inb_1')).toEqual(INBOX);
  });

  test.each([408, 429, 500, 502, 503, 504])('after %i', async (status) => {
    await using run = await start((response, _request, number) =>
      number === 1 ? answerJson(response, status, problem(status, 'x')) : answerJson(response, 200, INBOX),
    );
    expect(await run.client.inboxes.get('inb_1')).toEqual(INBOX);
  });

  test('after 409 only while the first request is running', async () => {
    await using run = await start((response, { url }, number) =>
      number > 1 && url.endsWith('inboxes')
        ? answerJson(response, 201, INBOX)
        : answerJson(
            response,
            409,
            problem(409, url.endsWith('inboxes') ? 'request_in_progress' : 'conflict'),
          ),
    );
    expect(await run.client.inboxes.create()).toEqual(INBOX);
    expect(await failureOf(run.client.inboxes.resume('inb_1'))).toMatchObject({ code: 'conflict' });
    expect(run.server.received).toHaveLength(3);
  });

  test.each([400, 401, 403, 404, 413, 422])('never after %i', async (status) => {
    await using run = await start((response) => answerJson(response, status, problem(status, 'x')));
    await failureOf(run.client.inboxes.create());
    expect(run.server.received).toHaveLength(1);
  });

  test.each([
    ['seconds', () => '1'],
    ['a date', () => new Date(Math.ceil(Date.now() / 1000) * 1000 + 1000).toUTCString()],
  ])('waits for Retry-After in %s', async (_, retryAfter) => {
    await using run = await start((response, _request, number) =>
      number === 1
        ? answerJson(response, 429, problem(429, 'rate_limited'), { 'retry-after': retryAfter() })
        : answerJson(response, 200, INBOX),
    );
    await run.client.inboxes.get('inb_1');
    const [first, second] = run.server.received;
    const waitedMs = (second?.at ?? 0) - (first?.at ?? 0);
    expect(waitedMs).toBeGreaterThan(900);
    expect(waitedMs).toBeLessThan(5_000 * TIME_FACTOR);
  });

  test('never waits for a Retry-After of more than a minute, nor for the end of a month', async () => {
    await using run = await start((response, { url }) =>
      url.endsWith('/me')
        ? answerJson(
            response,
            429,
            problem(429, 'usage_limit_exceeded', { resets_at: '2027-01-01T00:00:00.000Z' }),
          )
        : answerJson(response, 429, problem(429, 'rate_limited'), { 'retry-after': '61' }),
    );
    expect(await failureOf(run.client.me.get())).toBeInstanceOf(UsageLimitExceededError);
    expect(await failureOf(run.client.inboxes.get('inb_1'))).toBeInstanceOf(RateLimitedError);
    expect(run.server.received).toHaveLength(2);
  });

  test('ends after maxRetries', async () => {
    await using run = await start((response) => response.destroy());
    expect(await failureOf(run.client.inboxes.get('inb_1', { maxRetries: 1 }))).toBeInstanceOf(
      ConnectionError,
    );
    expect(run.server.received).toHaveLength(2);
  });

  test('of a deletion that was done without an answer succeeds', async () => {
    await using run = await start((response, _request, number) =>
      number === 1 ? response.destroy() : answerJson(response, 404, problem(404, 'not_found')),
    );
    expect(await run.client.messages.delete('msg_1')).toBeUndefined();
    expect(await failureOf(run.client.messages.delete('msg_1'))).toBeInstanceOf(NotFoundError);
  });

  test('of a change with If-Match is left to the caller, since the first one may have been done', async () => {
    await using run = await start((response) => response.destroy());
    await failureOf(run.client.drafts.update('drf_1', { subject: 'A', if_match: '"3"' }));
    expect(run.server.received).toHaveLength(1);
  });
});

describe('time and cancellation', () => {
  test('a timeout is a TimeoutError, after retries with the same key', async () => {
    await using run = await start(() => undefined, { timeoutMs: 500, maxRetries: 1 });
    const error = await failureOf(run.client.messages.send('inb_1', TO));
    expect(error).toBeInstanceOf(TimeoutError);
    expect(new Set(run.server.received.map(({ headers }) => headers['idempotency-key'])).size).toBe(1);
    expect(run.server.received).toHaveLength(2);
  });

  test('a waiting call has the time that it waits, beside the timeout', async () => {
    await using run = await start(
      (response) => setTimeout(() => answerJson(response, 200, { object: 'timeout', timed_out: true }), 300),
      { timeoutMs: 100 },
    );
    const answer = await run.client.messages.wait('inb_1', { timeout_seconds: 1 });
    expect(answer.object).toBe('timeout');
  });

  test('a signal ends a request, and the pause before a retry, with its reason', async () => {
    await using run = await start((response, { url }) =>
      url.endsWith('/me')
        ? answerJson(response, 503, problem(503, 'unavailable'), { 'retry-after': '50' })
        : undefined,
    );
    const { me, organization } = run.client;
    for (const call of [me.get.bind(me), organization.get.bind(organization)]) {
      const controller = new AbortController();
      const failure = failureOf(call({ signal: controller.signal }));
      setTimeout(() => controller.abort(new Error('enough')), 150);
      expect((await failure).message).toBe('enough');
    }
    const reason = new Error('before');
    expect(await failureOf(run.client.me.get({ signal: AbortSignal.abort(reason) }))).toBe(reason);
  });
});

describe('lists', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  const TOTAL = 10_000;
  const pages: Reply = (response, { url }) => {
    const query = new URL(url, 'http://localhost').searchParams;
    const from = Number(query.get('cursor') ?? 0);
    const limit = Number(query.get('limit') ?? 25);
    const data = Array.from({ length: Math.min(limit, TOTAL - from) }, (_, i) => ({
      object: 'message',
      id: `msg_${from + i}`,
      text: `${from + i} ${'x'.repeat(2_000)}`,
    }));
    const next = from + data.length;
    answerJson(response, 200, {
      data,
      has_more: next < TOTAL,
      next_cursor: next < TOTAL ? String(next) : null,
    });
  };

  test('10,000 items are walked page by page, in constant memory', async () => {
    await using run = await start(pages);
    const firstOfPages = new Set<WeakRef<object>>();
    let count = 0;
    for await (const message of run.client.messages.list('inb_1', { view: 'agent', limit: 100 })) {
      expect(message.id).toBe(`msg_${count}`);
      if (count % 100 === 0) firstOfPages.add(new WeakRef(message));
      count++;
    }
    expect(count).toBe(TOTAL);
    expect(run.server.received).toHaveLength(100);
    expect(
      run.server.received.every(({ url }) => url.includes('limit=100') && url.includes('view=agent')),
    ).toBe(true);
    collectGarbage();
    await new Promise((resolve) => setTimeout(resolve, 10));
    collectGarbage();
    expect([...firstOfPages].filter((reference) => reference.deref() !== undefined).length).toBeLessThan(5);
  });

  test('one page, and the next', async () => {
    await using run = await start(pages);
    const page = await run.client.messages.listAll({ limit: 2 });
    expect(page.data.map(({ id }) => id)).toEqual(['msg_0', 'msg_1']);
    expect([page.has_more, page.next_cursor]).toEqual([true, '2']);
    expect((await page.next())?.data.map(({ id }) => id)).toEqual(['msg_2', 'msg_3']);
  });

  test('leaving the loop requests no further page', async () => {
    await using run = await start(pages);
    for await (const _ of run.client.messages.listAll({ limit: 2 })) break;
    expect(run.server.received).toHaveLength(1);
  });

  test('a list that does not advance is an error', async () => {
    await using run = await start((response) =>
      answerJson(response, 200, { data: [], has_more: true, next_cursor: 'a' }),
    );
    const walk = async () => {
      for await (const _ of run.client.inboxes.list());
    };
    expect(await failureOf(walk())).toBeInstanceOf(ConnectionError);
  });
});

describe('a client', () => {
  const variables = { AGENT_EMAIL_API_KEY: process.env.AGENT_EMAIL_API_KEY, AGENT_EMAIL_BASE_URL: '' };

  test('says what is missing', () => {
    delete process.env.AGENT_EMAIL_API_KEY;
    delete process.env.AGENT_EMAIL_BASE_URL;
    expect(() => new AgentEmail({ baseUrl: 'http://localhost' })).toThrow('AGENT_EMAIL_API_KEY');
    expect(() => new AgentEmail({ apiKey: 'ask_a' })).toThrow('AGENT_EMAIL_BASE_URL');
    for (const baseUrl of ['mail.example.com', 'ftp://mail.example.com', 'https://user@mail.example.com'])
      expect(() => new AgentEmail({ apiKey: 'ask_a', baseUrl })).toThrow('is not the address of a service');
    expect(() => new AgentEmail({ apiKey: 'a b', baseUrl: 'http://localhost' })).toThrow(AgentEmailError);
    Object.assign(process.env, variables);
  });

  test('reads the variables, and an address with /api/v1', async () => {
    await using run = await start((response) => answerJson(response, 200, INBOX));
    process.env.AGENT_EMAIL_API_KEY = 'ask_of_variable\n';
    process.env.AGENT_EMAIL_BASE_URL = `${run.server.url}/api/v1/`;
    await new AgentEmail().inboxes.get('inb_1');
    delete process.env.AGENT_EMAIL_API_KEY;
    delete process.env.AGENT_EMAIL_BASE_URL;
    expect(run.server.received[0]).toMatchObject({
      url: '/api/v1/inboxes/inb_1',
      headers: { authorization: 'Bearer ask_of_variable' },
    });
  });

  test('does not run in a browser', () => {
    Object.assign(globalThis, { window: globalThis, document: {} });
    try {
      expect(() => new AgentEmail({ apiKey: 'ask_a', baseUrl: 'http://localhost' })).toThrow('browser');
    } finally {
      Reflect.deleteProperty(globalThis, 'window');
      Reflect.deleteProperty(globalThis, 'document');
    }
  });

  test('shows its key neither when it is printed nor in errors', async () => {
    await using run = await start((response) => response.destroy(), { maxRetries: 0 });
    const error = await failureOf(run.client.inboxes.get('inb_1'));
    expect(inspect([run.client, error], { depth: 20, showHidden: true })).not.toContain('ask_secret');
  });
});
