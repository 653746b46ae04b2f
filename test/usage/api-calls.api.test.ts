import { beforeAll, describe, expect, test } from '@jest/globals';
import { pino } from 'pino';
import { createApiCallMeter } from '../../domain/usage/api-call-meter.ts';
import { eventually } from '../support/eventually.ts';
import { administerLimits, setLimit, type TestLimits } from '../support/limits.ts';
import { observeStatements } from '../support/observe-statements.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { createPageClient } from '../support/page-client.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';

const logger = pino({ level: 'silent' });

const app = useTestApp();
let limits: TestLimits;
beforeAll(async () => {
  limits = administerLimits({ database: app.worker });
});

const allow = (organizationId: string, limit: number) =>
  setLimit(limits, organizationId, { resource: 'api_calls', limit });

test('writes answered calls once a second and rejects calls over a hard limit', async () => {
  const { organizationId, token } = await createOrganization(app.worker);
  await allow(organizationId, 3);
  const current = async () => (await app.call('/org/usage', { token })).json().counters.api_calls.current;
  const list = () => app.call('/inboxes', { token });
  expect((await list()).statusCode).toBe(200);
  expect((await app.call('/inboxes/inb_none', { token })).statusCode).toBe(404);
  expect((await app.call('/inboxes', { token, method: 'POST', body: { unknown: 1 } })).statusCode).toBe(400);
  // Reading usage counts as a call, but is never rejected.
  await eventually(async () => expect(await current()).toBeGreaterThanOrEqual(3));
  await eventually(async () => expectProblem(await list(), 'usage_limit_exceeded'));
  const refused = await list();
  expect(expectProblem(refused, 'usage_limit_exceeded')).toMatchObject({
    counter: 'api_calls',
    resets_at: expect.any(String),
  });
  expect(refused.headers['retry-after']).toBeUndefined();

  const own = await app.call('/org/limits', { token, method: 'PUT', body: { counters: {} } });
  expect(own.statusCode).toBe(200);
  const upgrade = { tier: 'business', note: 'The calls are used up.' };
  expect((await app.call('/org/upgrade-requests', { token, method: 'POST', body: upgrade })).statusCode).toBe(
    201,
  );
  expect((await app.call('/org/upgrade-requests', { token })).statusCode).toBe(200);
  // A leaked key that used up the limit can still be revoked.
  const { keyId } = await createKey(app.worker, { organizationId });
  expect((await app.call(`/api-keys/${keyId}`, { token, method: 'DELETE' })).statusCode).toBe(204);
  await allow(organizationId, 1_000);
  await eventually(async () => expect((await list()).statusCode).toBe(200));
});

test('counts no pages for people', async () => {
  const { organizationId, ownerId, token } = await createOrganization(app.worker);
  const browser = createPageClient(app);
  browser.cookies.set('session', (await createTestSession(app.worker, ownerId)).token);
  for (let count = 0; count < 5; count += 1)
    expect((await browser.open(`/settings?org=${organizationId}`)).statusCode).toBe(200);
  await app.call('/inboxes', { token });
  const current = async () => (await app.call('/org/usage', { token })).json().counters.api_calls.current;
  // The calls that read the counter count, too.
  let reads = 0;
  await eventually(async () => {
    reads += 1;
    expect(await current()).toBeGreaterThan(0);
  });
  expect(await current()).toBeLessThanOrEqual(reads + 1);
});

describe('the API call meter', () => {
  test('writes all organizations in one statement, and the rest on close', async () => {
    const organizations = await Promise.all([1, 2].map(() => createOrganization(app.worker)));
    let statements = 0;
    const count = () => {
      statements += 1;
    };
    const database = { db: observeStatements(app.database.db, { before: count }) };
    const meter = createApiCallMeter({ database, logger, flushIntervalMs: 3_600_000 });
    for (const { organizationId } of [...organizations, ...organizations]) meter.count(organizationId);
    await Promise.all([meter.flush(), meter.flush()]);
    expect(statements).toBe(1);
    for (const { organizationId } of organizations) meter.count(organizationId);
    await meter.close();
    expect(statements).toBe(2);
    for (const { token } of organizations) {
      expect((await app.call('/org/usage', { token })).json().counters.api_calls.current).toBe(3);
    }
  });

  test('keeps counts whose write failed', async () => {
    const { organizationId, token } = await createOrganization(app.worker);
    let down = true;
    const fail = () => {
      if (down) throw new Error('down');
    };
    const database = { db: observeStatements(app.database.db, { before: fail }) };
    const meter = createApiCallMeter({ database, logger, flushIntervalMs: 3_600_000 });
    meter.count(organizationId);
    await meter.flush();
    meter.count(organizationId);
    down = false;
    await meter.close();
    expect((await app.call('/org/usage', { token })).json().counters.api_calls.current).toBe(2);
  });

  test('accepts calls again in the new month', async () => {
    const { organizationId } = await createOrganization(app.worker);
    await createInbox(app.worker, await createOrganization(app.worker));
    await allow(organizationId, 1);
    let now = new Date('2031-05-31T12:00:00Z');
    const meter = createApiCallMeter({
      database: app.database,
      logger,
      flushIntervalMs: 3_600_000,
      now: () => now,
    });
    expect(meter.findRefusal(organizationId)).toBeUndefined();
    meter.count(organizationId);
    await meter.flush();
    expect(meter.findRefusal(organizationId)).toMatchObject({
      code: 'usage_limit_exceeded',
      extensions: { resets_at: '2031-06-01T00:00:00.000Z' },
    });
    now = new Date('2031-06-01T00:00:00Z');
    expect(meter.findRefusal(organizationId)).toBeUndefined();
    await meter.close();
  });
});
