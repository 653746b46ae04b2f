import { afterEach, expect, test } from '@jest/globals';
import { type Burst, sendBurst } from '../support/burst.ts';
import { eventually } from '../support/eventually.ts';
import { createKey, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { startTestApp, type TestApp, type TestAppOptions } from '../support/test-app.ts';

const seeder = useTestApp();
const running: TestApp[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((app) => app.close()));
});

/** One token per second is refilled while a test runs. */
const SMALL_LIMIT: NonNullable<TestAppOptions['config']> = {
  RATE_LIMIT_PER_SECOND: '1',
  RATE_LIMIT_BURST: '20',
};

async function start(config: TestAppOptions['config']): Promise<TestApp> {
  const app = await startTestApp({ config });
  running.push(app);
  return app;
}

const sendRequests = (apps: TestApp[], token: string, requests: number): Promise<Burst> =>
  sendBurst(requests, (index) => (apps[index % apps.length] as TestApp).call('/org', { token }));

const createTenant = (): Promise<TestOrganization> => createOrganization(seeder.worker);

test('every response states the limit, and a rejection states when to retry', async () => {
  const app = await start(SMALL_LIMIT);
  const { token } = await createTenant();
  const first = await app.call('/org', { token });
  expect(first.headers).toMatchObject({
    'ratelimit-limit': '20',
    'ratelimit-remaining': '19',
    'ratelimit-reset': '1',
  });
  await sendRequests([app], token, 60);
  // A token is refilled every second.
  const rejected = await eventually(async () => {
    const response = await app.call('/org', { token });
    expectProblem(response, 'rate_limited');
    return response;
  });
  expect(rejected.headers).toMatchObject({ 'retry-after': '1', 'ratelimit-remaining': '0' });
  expect((await app.call('/org', { token: (await createTenant()).token })).statusCode).toBe(200);
});

test('a full burst passes, plus at most a tenth of it', async () => {
  const app = await start(SMALL_LIMIT);
  const { passed, seconds } = await sendRequests([app], (await createTenant()).token, 80);
  expect(passed).toBeGreaterThanOrEqual(20);
  expect(passed).toBeLessThanOrEqual(22 + seconds);
});

test('two processes share one bucket, each exceeding it by at most a tenth', async () => {
  const apps = [await start(SMALL_LIMIT), await start(SMALL_LIMIT)];
  const { passed, seconds } = await sendRequests(apps, (await createTenant()).token, 120);
  expect(passed).toBeGreaterThanOrEqual(16);
  expect(passed).toBeLessThanOrEqual(24 + seconds);
});

test('tokens are refilled over time', async () => {
  const app = await start(SMALL_LIMIT);
  const { token } = await createTenant();
  expect((await sendRequests([app], token, 80)).refused).not.toHaveLength(0);
  await eventually(async () => expect((await app.call('/org', { token })).statusCode).toBe(200));
});

test('the credentials of an organization share its limit', async () => {
  const app = await start({ ORGANIZATION_RATE_LIMIT_PER_SECOND: '1', ORGANIZATION_RATE_LIMIT_BURST: '20' });
  const organization = await createTenant();
  const second = await createKey(seeder.worker, organization);
  const results = await Promise.all([
    sendRequests([app], organization.token, 40),
    sendRequests([app], second.token, 40),
  ]);
  const passed = results.reduce((sum, result) => sum + result.passed, 0);
  expect(passed).toBeGreaterThanOrEqual(20);
  const seconds = Math.max(...results.map((result) => result.seconds));
  expect(passed).toBeLessThanOrEqual(24 + seconds);
});

/** 50 requests at once, 10 more each second. */
function expectAddressLimit({ passed, refused, seconds }: Burst): void {
  expect(passed).toBeGreaterThanOrEqual(50);
  expect(passed).toBeLessThanOrEqual(55 + 10 * seconds);
  expect(refused).not.toHaveLength(0);
}

test('callers without a credential are limited by address; probes are not limited', async () => {
  const app = await start({ TRUST_PROXY: '127.0.0.1' });
  const from = (ip: string) => app.call('/org', { headers: { 'x-forwarded-for': ip } });
  expectAddressLimit(await sendBurst(200, () => from('192.0.2.1')));
  expectProblem(await from('192.0.2.2'), 'unauthenticated');
  const probes = await Promise.all(Array.from({ length: 120 }, () => app.app.inject('/health/live')));
  expect(new Set(probes.map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
});

test('X-Forwarded-For from an untrusted proxy is ignored', async () => {
  const app = await start({});
  expectAddressLimit(
    await sendBurst(200, (index) => app.call('/org', { headers: { 'x-forwarded-for': `192.0.2.${index}` } })),
  );
});
