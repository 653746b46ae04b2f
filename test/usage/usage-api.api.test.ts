import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import type { Tier } from '../../domain/organizations/tier.ts';
import { applyUsageDeltas } from '../../domain/usage/apply-usage-deltas.ts';
import { USAGE_COUNTERS } from '../../domain/usage/counters.ts';
import { TIER_LIMITS } from '../../domain/usage/tiers.ts';
import { readUsageHistory } from '../../domain/usage/usage-history.ts';
import { administerLimits, setLimit, type TestLimits } from '../support/limits.ts';
import { observeStatements } from '../support/observe-statements.ts';
import { createKey, createOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();
let limits: TestLimits;
beforeAll(async () => {
  limits = administerLimits({ database: app.worker });
});

async function arrange(tier?: Tier) {
  const organization = await createOrganization(app.worker);
  const { organizationId, token } = organization;
  if (tier) await limits.setTier(organizationId, tier, 'support@example.com');
  const get = async (path: string) => (await app.call(path, { token })).json();
  const put = (counters: object, by = token) =>
    app.call('/org/limits', { method: 'PUT', token: by, body: { counters } });
  const add = (counter: string, amount: number, at: Date) =>
    query(
      app.worker,
      sql`insert into usage_deltas (org_id, counter, at, amount) values (${organizationId}, ${counter}, ${at.toISOString()}, ${amount})`,
    );
  return { ...organization, get, put, add };
}

/** Excludes the API calls of the test itself, which become an hourly sum if the hour ends during the test. */
const isNotHourlySum = ({ type }: { type: string }) => type !== 'hourly_sum';

describe('GET /org/usage', () => {
  test('returns numbers everywhere, even without limits', async () => {
    const { get } = await arrange();
    const { period, counters } = await get('/org/usage');
    expect(Object.keys(counters)).toEqual([...USAGE_COUNTERS]);
    for (const counter of Object.values(counters))
      expect(counter).toEqual({
        current: expect.any(Number),
        limit: Number.MAX_SAFE_INTEGER,
        unlimited: true,
        kind: 'soft',
        percentage: expect.any(Number),
      });
    expect(new Date(period.end).getTime()).toBeGreaterThan(Date.now());
    expect(period.start).toMatch(/-01T00:00:00\.000Z$/);
  });

  test('requires usage:read', async () => {
    const { organizationId } = await arrange();
    const { token } = await createKey(app.worker, { organizationId, permissions: ['inboxes:read'] });
    for (const path of ['/org/usage', '/org/limits', '/org/usage/history', '/org/usage/events'])
      expect(expectProblem(await app.call(path, { token }), 'permission_denied')).toMatchObject({
        permission: 'usage:read',
      });
  });

  test('does not show other organizations', async () => {
    const [one, other] = [await arrange(), await arrange()];
    await one.add('messages_sent', 7, new Date());
    expect((await one.get('/org/usage')).counters.messages_sent.current).toBe(7);
    expect((await other.get('/org/usage')).counters.messages_sent.current).toBe(0);
    await applyUsageDeltas(app.worker);
    expect((await one.get('/org/usage')).counters.messages_sent.current).toBe(7);
    expect((await other.get('/org/usage')).counters.messages_sent.current).toBe(0);
  });
});

describe('limits', () => {
  test.each(Object.entries(TIER_LIMITS))('match the tier %s', async (tier, { kind, limits: table }) => {
    const { get } = await arrange(tier as Tier);
    const shown = await get('/org/limits');
    expect(shown.tier).toBe(tier);
    for (const counter of USAGE_COUNTERS)
      expect(shown.counters[counter]).toEqual({
        limit: table[counter] ?? Number.MAX_SAFE_INTEGER,
        unlimited: table[counter] === null,
        kind,
        source: 'tier',
        allowed: table[counter],
        own_limit: null,
        warning_threshold: 80,
      });
    expect(shown.inboxes).toMatchObject({ current: 0, kind, unlimited: table.inboxes === null });
    expect(shown.domains).toMatchObject({ current: 0, kind, unlimited: table.domains === null });
  });

  test('custom limits are hard, at most the allowed limit, and removed by null', async () => {
    const { get, put, organizationId, keyId } = await arrange('developer');
    const refused = await put({
      messages_sent: { own_limit: 10_001 },
      messages_received: { own_limit: 5 },
    });
    expect(expectProblem(refused, 'unprocessable')).toMatchObject({
      counter: 'messages_sent',
      allowed: 10_000,
    });
    expect((await get('/org/limits')).counters.messages_received.own_limit).toBeNull();

    const set = await put({ messages_sent: { own_limit: 100, warning_threshold: 50 } });
    expect(set.json().counters.messages_sent).toMatchObject({
      limit: 100,
      own_limit: 100,
      allowed: 10_000,
      kind: 'hard',
      source: 'own',
      warning_threshold: 50,
    });
    expect(set.json().counters.api_calls).toMatchObject({ source: 'tier', kind: 'soft' });
    // A lower tier limit still applies.
    await limits.setTier(organizationId, 'free', 'support@example.com');
    await put({ messages_sent: { own_limit: 3_000 } });
    expect((await get('/org/limits')).counters.messages_sent).toMatchObject({ limit: 3_000, source: 'own' });
    const taken = await put({ messages_sent: { own_limit: null, warning_threshold: null } });
    expect(taken.json().counters.messages_sent).toMatchObject({
      limit: 3_000,
      own_limit: null,
      source: 'tier',
      warning_threshold: 80,
    });
    const entries = (await get('/org/usage/events?order=asc')).data.filter(isNotHourlySum);
    expect(entries).toMatchObject([
      {
        type: 'tier_changed',
        actor: 'support@example.com',
        data: { from: 'enterprise', to: 'developer' },
        counter: null,
      },
      {
        type: 'own_limit_changed',
        actor: keyId,
        counter: 'messages_sent',
        data: { to: { limit: 100, warning_percent: 50 } },
      },
      { type: 'tier_changed', data: { to: 'free' } },
      { type: 'own_limit_changed', data: { from: { limit: 100 }, to: { limit: 3_000 } } },
      { type: 'own_limit_changed', data: { to: { limit: null, warning_percent: null } } },
    ]);
  });

  test('concurrent changes all succeed, and the ledger entries form a chain', async () => {
    const { get, put } = await arrange();
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) => put({ api_calls: { own_limit: 1_000 + index } })),
    );
    expect(answers.map(({ statusCode }) => statusCode)).toEqual(answers.map(() => 200));
    const { data } = await get('/org/usage/events?type=own_limit_changed&order=asc');
    const limitsOf = (end: string) =>
      data.map((entry: { data: Record<string, { limit: number | null }> }) => entry.data[end]?.limit);
    expect(limitsOf('from')).toEqual([null, ...limitsOf('to').slice(0, -1)]);
    expect((await get('/org/limits')).counters.api_calls.own_limit).toBe(limitsOf('to').at(-1));
  });

  test('rejects invalid limits', async () => {
    const { put, organizationId, productionEnvironmentId: environmentId } = await arrange();
    for (const invalid of [
      { messages_sent: { own_limit: -1 } },
      { messages_sent: { own_limit: 1.5 } },
      { messages_sent: { own_limit: 2 ** 60 } },
      { messages_sent: { warning_threshold: 100 } },
      { messages_sent: { warning_threshold: 0 } },
      { inboxes: { own_limit: 1 } },
      { messages_sent: { limit: 1 } },
    ])
      expectProblem(await put(invalid), 'validation_error');
    const reader = await createKey(app.worker, { organizationId, permissions: ['usage:read'] });
    expectProblem(await put({}, reader.token), 'permission_denied');
    const bound = await createKey(app.worker, { organizationId, environmentId });
    expectProblem(await put({}, bound.token), 'permission_denied');
  });

  test('check constraints reject mistyped values from operators', async () => {
    const { organizationId } = await arrange();
    const override = (limited: string, kind: string) =>
      query(
        app.worker,
        sql`insert into limit_overrides (org_id, resource, amount, kind, reason, created_by, created_at)
         values (${organizationId}, ${limited}, 1, ${kind}, 'Test', 'test', now())`,
      );
    await expect(override('message_sent', 'hard')).rejects.toThrow('limit_overrides_resource');
    await expect(override('messages_sent', 'Hard')).rejects.toThrow('limit_overrides_kind');
    const tier = query(app.worker, sql`update organizations set tier = 'gold' where id = ${organizationId}`);
    await expect(tier).rejects.toThrow('organizations_tier');
  });

  test('an override replaces the tier’s limit until it expires, including soft and unlimited ones', async () => {
    const { get, organizationId } = await arrange('free');
    const override = (limit: number | null, kind: 'soft' | 'hard') =>
      limits.setOverride(
        organizationId,
        { resource: 'api_calls', limit, kind, expiresAt: new Date(Date.now() + 3_600_000), reason: 'Trial' },
        'support@example.com',
      );
    await override(5, 'soft');
    expect((await get('/org/limits')).counters.api_calls).toMatchObject({
      limit: 5,
      kind: 'soft',
      source: 'override',
      allowed: 5,
    });
    await override(null, 'hard');
    expect((await get('/org/limits')).counters.api_calls).toMatchObject({ unlimited: true, allowed: null });
    await limits.removeOverride(organizationId, 'api_calls', 'support@example.com');
    expect((await get('/org/limits')).counters.api_calls).toMatchObject({ limit: 100_000, source: 'tier' });
    const kinds = (await get('/org/usage/events')).data
      .filter(isNotHourlySum)
      .map(({ type }: { type: string }) => type);
    expect(kinds).toEqual(['override_removed', 'override_set', 'override_set', 'tier_changed']);
    await expect(limits.setTier('org_none', 'free', 'x')).rejects.toMatchObject({ code: 'not_found' });
  });

  test('of inboxes and domains are exact if hard and refuse nothing if soft', async () => {
    const { get, token, organizationId } = await arrange('free');
    const inbox = () => app.call('/inboxes', { method: 'POST', token, body: {} });
    const domain = (name: string) =>
      app.call('/domains', { method: 'POST', token, body: { domain_name: name } });
    const answers = await Promise.all(Array.from({ length: 8 }, inbox));
    const made = answers.filter(({ statusCode }) => statusCode === 201);
    expect(made).toHaveLength(5);
    for (const answer of answers.filter(({ statusCode }) => statusCode !== 201))
      expect(expectProblem(answer, 'plan_limit_reached')).toMatchObject({ counter: 'inboxes' });
    expect((await get('/org/limits')).inboxes).toMatchObject({ current: 5, limit: 5, kind: 'hard' });
    await app.call(`/inboxes/${made[0]?.json().id}`, { method: 'DELETE', token });
    expect((await inbox()).statusCode).toBe(201);
    const unique = organizationId.slice(-10);
    expect((await domain(`a.${unique}.example.com`)).statusCode).toBe(201);
    expect(expectProblem(await domain(`b.${unique}.example.com`), 'plan_limit_reached')).toMatchObject({
      counter: 'domains',
    });
    await setLimit(limits, organizationId, { resource: 'inboxes', limit: 1, kind: 'soft' });
    expect((await inbox()).statusCode).toBe(201);
  });
});

describe('history', () => {
  test('has one row per day, zeros included, with or without pending deltas', async () => {
    const { get, add } = await arrange();
    await add('messages_sent', 2, new Date('2031-01-01T00:00:00.000Z'));
    await add('messages_sent', 3, new Date('2031-01-01T23:59:59.999Z'));
    await add('messages_sent', -1, new Date('2031-01-03T12:00:00.000Z'));
    await add('storage_bytes', 500, new Date('2031-01-01T10:00:00.000Z'));
    await add('storage_bytes', -200, new Date('2031-01-03T10:00:00.000Z'));
    const expected = [
      { date: '2030-12-31', messages_sent: 0, storage_bytes: 0 },
      { date: '2031-01-01', messages_sent: 5, storage_bytes: 500 },
      { date: '2031-01-02', messages_sent: 0, storage_bytes: 500 },
      { date: '2031-01-03', messages_sent: -1, storage_bytes: 300 },
      { date: '2031-01-04', messages_sent: 0, storage_bytes: 300 },
    ];
    const range = '/org/usage/history?start=2030-12-31&end=2031-01-04T09:00:00Z';
    expect((await get(range)).data).toMatchObject(expected);
    await applyUsageDeltas(app.worker);
    expect((await get(range)).data).toMatchObject(expected);
  });

  test('is consistent under concurrent changes', async () => {
    const { organizationId, add } = await arrange();
    const [yesterday, today] = [new Date(Date.now() - 86_400_000), new Date()];
    await add('storage_bytes', 500, today);
    const changing = observeStatements(app.worker.db, {
      after: async () => void (await add('storage_bytes', 70, today)),
    });
    const days = await readUsageHistory(changing, organizationId, { start: yesterday, end: today });
    expect(days.map(({ amounts }) => amounts.storage_bytes)).toEqual([0, 500]);
  });

  test('covers at most 366 days', async () => {
    const { get, token } = await arrange();
    expect((await get('/org/usage/history?start=2031-01-01&end=2032-01-01')).data).toHaveLength(366);
    expect((await get('/org/usage/history')).data).toHaveLength(31);
    const leapDay = await get('/org/usage/history?start=2032-02-28T23:30:00-01:00&end=2032-03-01');
    expect(leapDay.data.map(({ date }: { date: string }) => date)).toEqual(['2032-02-29', '2032-03-01']);
    for (const query of [
      'start=2031-01-01&end=2032-01-02',
      'start=2031-01-02&end=2031-01-01',
      'start=yesterday',
      'start=2031-13-01',
      'start=2031-02-29&end=2031-03-02',
      'end=2031-06-31T10:00:00Z',
    ])
      expectProblem(await app.call(`/org/usage/history?${query}`, { token }), 'validation_error');
  });
});

test('pages through the ledger with hourly sums in order', async () => {
  const { get, add, organizationId } = await arrange('free');
  const hour = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000);
  // The previous hour may not be settled yet.
  for (let ago = 2; ago <= 4; ago += 1)
    await add('messages_sent', ago, new Date(hour.getTime() - ago * 3_600_000 + 1));
  await add('messages_received', 9, new Date(hour.getTime() - 2 * 3_600_000));
  // The current hour.
  await add('messages_sent', 100, new Date(hour.getTime() + 7_200_000));
  await applyUsageDeltas(app.worker);
  await limits.setTier(organizationId, 'business', 'support@example.com');
  const all: { type: string; counter: string; data: { amount?: number } }[] = [];
  for (let cursor = ''; ; ) {
    const page = await get(`/org/usage/events?limit=2${cursor && `&cursor=${cursor}`}`);
    all.push(...page.data.filter(({ counter }: { counter: string }) => counter !== 'api_calls'));
    if (!page.has_more) break;
    cursor = page.next_cursor;
  }
  expect(all.map(({ type, counter, data }) => [type, counter, data.amount])).toEqual([
    ['tier_changed', null, undefined],
    ['tier_changed', null, undefined],
    ['hourly_sum', 'messages_sent', 2],
    ['hourly_sum', 'messages_received', 9],
    ['hourly_sum', 'messages_sent', 3],
    ['hourly_sum', 'messages_sent', 4],
  ]);
  expect((await get('/org/usage/events?type=hourly_sum&order=asc')).data[0]).toMatchObject({
    counter: 'messages_sent',
    data: { amount: 4 },
    actor: 'system',
  });
});
