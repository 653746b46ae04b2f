import { expect, test } from '@jest/globals';
import { createApiKeyToken } from '../../domain/api-keys/api-key-token.ts';
import type { Dependencies } from '../../platform/dependencies.ts';
import type { QueueAge } from '../../platform/outbox/queue-ages.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { startTestApp } from '../support/test-app.ts';

const METRICS_TOKEN = 'let-me-see';
const AVAILABLE = { database: 'ok', temporal: 'ok', storage: 'ok' } as const;
let states: Partial<Awaited<ReturnType<Dependencies['read']>>> = {};
let ages: Record<string, QueueAge> | Promise<Record<string, QueueAge>> = {};
const app = useTestApp({
  config: { METRICS_TOKEN },
  queueAges: { read: async () => ages },
  dependencies: { read: async () => ({ ...AVAILABLE, ...states }), latencyMs: () => 0 },
});

const get = (url: string, headers: Record<string, string> = {}) => app.app.inject({ url, headers });

test('live reports that the process responds, and ready that its dependencies respond', async () => {
  expect((await get('/health/live')).json()).toEqual({ status: 'ok' });
  expect((await get('/health/ready')).json()).toEqual({
    status: 'ok',
    checks: AVAILABLE,
    queues: {},
  });
  states = { database: 'unavailable' };
  const down = await get('/health/ready');
  states = {};
  expectProblem(down, 'unavailable');
  expect(down.body).toContain('database');
  expect(down.headers['retry-after']).toBe('5');
  expect((await get('/health/live')).statusCode).toBe(200);
});

test.each(['temporal', 'storage'] as const)('stays ready without %s, and says so', async (dependency) => {
  states = { [dependency]: 'unavailable' };
  const response = await get('/health/ready');
  const metrics = await get('/metrics', { authorization: `Bearer ${METRICS_TOKEN}` });
  states = {};
  expect(response.statusCode).toBe(200);
  expect(response.json()).toEqual({
    status: 'degraded',
    checks: { ...AVAILABLE, [dependency]: 'unavailable' },
    queues: {},
  });
  expect(metrics.body).toContain(`agent_email_dependency_up{dependency="${dependency}"} 0`);
  expect(metrics.body).toContain('agent_email_dependency_up{dependency="database"} 1');
});

test('ready answers in time while the database accepted a statement and does not answer it', async () => {
  ages = new Promise(() => undefined);
  const responsive = get('/health/ready');
  states = { database: 'unavailable' };
  const down = get('/health/ready');
  expectProblem(await down, 'unavailable');
  states = {};
  expect((await responsive).json()).toEqual({ status: 'ok', checks: AVAILABLE, queues: {} });
  ages = {};
});

test('ready stays 200 but reports degraded while work of a queue waits for long', async () => {
  ages = {
    inbound: { outboxSeconds: 0, temporalSeconds: 31.5 },
    outbound: { outboxSeconds: 0.2, temporalSeconds: null },
  };
  const waiting = await get('/health/ready');
  ages = { inbound: { outboxSeconds: 0, temporalSeconds: 2 } };
  const quick = await get('/health/ready');
  ages = { inbound: { outboxSeconds: 31, temporalSeconds: null } };
  const unsent = await get('/health/ready');
  ages = {};
  expect(waiting.statusCode).toBe(200);
  expect(waiting.json()).toEqual({
    status: 'degraded',
    checks: AVAILABLE,
    queues: {
      inbound: { outbox_seconds: 0, temporal_seconds: 31.5 },
      outbound: { outbox_seconds: 0.2, temporal_seconds: null },
    },
  });
  expect(quick.json()).toMatchObject({ status: 'ok' });
  expect(unsent.json()).toMatchObject({ status: 'degraded' });
});

test('metrics require the token', async () => {
  await get('/api/v1/nowhere/secret-person@example.test');
  expect(expectProblem(await get('/metrics'), 'unauthenticated').fix).toContain('METRICS_TOKEN');
  expectProblem(await get('/metrics', { authorization: 'Bearer wrong' }), 'unauthenticated');
  const metrics = await get('/metrics', { authorization: `Bearer ${METRICS_TOKEN}` });
  expect(metrics.headers['content-type']).toContain('text/plain');
  expect(metrics.body).toContain(
    'http_request_duration_seconds_count{method="GET",route="unknown",status="404"}',
  );
  expect(metrics.body).not.toContain('secret-person');
});

test('without a configured token, metrics are refused with the setting to add', async () => {
  const withoutToken = await startTestApp();
  try {
    for (const headers of [{}, { authorization: 'Bearer undefined' }, { authorization: 'Bearer ' }]) {
      const refused = await withoutToken.app.inject({ url: '/metrics', headers });
      expect(expectProblem(refused, 'unauthenticated').fix).toContain('Set METRICS_TOKEN');
    }
  } finally {
    await withoutToken.close();
  }
});

test('without its database the API responds with unavailable and reveals no details', async () => {
  const disconnected = await startTestApp({ databaseUrl: 'postgresql://someone:secret@127.0.0.1:1/none' });
  try {
    const response = await disconnected.call('/inboxes', { token: createApiKeyToken('live') });
    expectProblem(response, 'unavailable');
    expect(response.headers['retry-after']).toBe('5');
    expect(response.body).not.toMatch(/secret|127\.0\.0\.1:1|ECONN/);
    expectProblem(await disconnected.app.inject('/health/ready'), 'unavailable');
  } finally {
    await disconnected.close();
  }
});

test('every response has a description', () => {
  const descriptions = app.contract.operations.flatMap(({ operationId, responses }) =>
    Object.entries(responses as Record<string, { description?: string }>).map(
      ([status, { description }]) => `${operationId} ${status}: ${description}`,
    ),
  );
  expect(
    descriptions.filter((description) => /: (?:Default Response|undefined|)$/.test(description)),
  ).toEqual([]);
  expect(descriptions).toContain('messages.get 200: The message.');
  expect(descriptions).toContain('webhookEndpoints.create 201: The created webhook endpoint.');
  expect(descriptions).toContain('threads.list 200: One page, newest first by default.');
});
