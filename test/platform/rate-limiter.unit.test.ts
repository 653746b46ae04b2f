import { describe, expect, jest, test } from '@jest/globals';
import { pino } from 'pino';
import {
  createRateLimiter,
  type LeaseTokens,
  leaseFromMemory,
} from '../../platform/rate-limit/rate-limiter.ts';

const LIMIT = { perSecond: 10, burst: 100 };
const BLOCK = LIMIT.burst / 10;
const logger = pino({ level: 'silent' });

/** Starts rate limiters of several processes with one shared bucket and a test clock. */
function startProcesses(processes: number) {
  let time = 1_000_000;
  const now = () => time;
  const shared = leaseFromMemory(now);
  const leases: number[] = [];
  const lease: LeaseTokens = async (bucket, limit, wanted) => {
    const granted = await shared(bucket, limit, wanted);
    leases.push(granted);
    return granted;
  };
  const limiters = Array.from({ length: processes }, () => createRateLimiter({ lease, logger, now }));
  return {
    leases,
    advance: (milliseconds: number) => {
      time += milliseconds;
    },
    async count(requests: number): Promise<number> {
      let allowed = 0;
      for (let index = 0; index < requests; index += 1) {
        const verdict = await limiters[index % processes]?.take('bucket', LIMIT);
        if (verdict?.allowed) allowed += 1;
      }
      return allowed;
    },
    take: () => limiters[0]?.take('bucket', LIMIT),
  };
}

describe.each([1, 2, 5])('%i processes', (processes) => {
  test('allow a burst, and at most one block per process beyond it', async () => {
    const allowed = await startProcesses(processes).count(1000);
    expect(allowed).toBeGreaterThanOrEqual(LIMIT.burst - processes * BLOCK);
    expect(allowed).toBeLessThanOrEqual(LIMIT.burst + processes * BLOCK);
  });

  test('keep the average rate', async () => {
    const { count, advance } = startProcesses(processes);
    const seconds = 60;
    let allowed = 0;
    for (let tick = 0; tick < seconds * 10; tick += 1) {
      allowed += await count(20);
      advance(100);
    }
    const granted = LIMIT.burst + seconds * LIMIT.perSecond;
    expect(allowed).toBeLessThanOrEqual(granted + processes * BLOCK);
    expect(allowed).toBeGreaterThanOrEqual(granted - processes * BLOCK - LIMIT.perSecond);
  });
});

test('queries the shared bucket once per block, not per request', async () => {
  const { count, leases } = startProcesses(1);
  await count(80);
  expect(leases.length).toBeLessThanOrEqual(10);
});

test('fills the bucket while idle', async () => {
  const { count, advance } = startProcesses(1);
  await count(1000);
  advance(10_000);
  expect(await count(1000)).toBeGreaterThanOrEqual(LIMIT.burst - BLOCK);
});

test('holds no more than the burst after a long idle time', async () => {
  const { count, advance } = startProcesses(1);
  await count(1000);
  advance(3_600_000);
  const allowed = await count(1000);
  expect(allowed).toBeGreaterThanOrEqual(LIMIT.burst - BLOCK);
  expect(allowed).toBeLessThanOrEqual(LIMIT.burst + BLOCK);
});

test('leases no more than the burst from memory', async () => {
  let time = 1_000_000;
  const lease = leaseFromMemory(() => time);
  expect(await lease('bucket', LIMIT, 1_000)).toBe(LIMIT.burst);
  expect(await lease('bucket', LIMIT, 1_000)).toBe(0);
  time += 3_600_000;
  expect(await lease('bucket', LIMIT, 1_000)).toBe(LIMIT.burst);
  time += 1_500;
  expect(await lease('bucket', LIMIT, 1_000)).toBe(1.5 * LIMIT.perSecond);
});

test('returns the remaining tokens and when to retry', async () => {
  const { count, take } = startProcesses(1);
  expect(await take()).toEqual({
    allowed: true,
    limit: 100,
    remaining: 99,
    resetSeconds: 1,
    retryAfterSeconds: 0,
  });
  await count(1000);
  expect(await take()).toMatchObject({ allowed: false, remaining: 0, retryAfterSeconds: 1 });
});

test('allows requests while the shared bucket is unreachable', async () => {
  const limiter = createRateLimiter({ lease: () => Promise.reject(new Error('down')), logger });
  for (let index = 0; index < 500; index += 1)
    expect((await limiter.take('bucket', LIMIT)).allowed).toBe(true);
});

test('does not wait for a lease while tokens are left', async () => {
  let grant: (granted: number) => void = () => undefined;
  const limiter = createRateLimiter({
    lease: () =>
      new Promise((resolve) => {
        grant = resolve;
      }),
    logger,
  });
  for (let index = 0; index < BLOCK; index += 1)
    expect((await limiter.take('bucket', LIMIT)).allowed).toBe(true);
  let settled = false;
  const overCredit = limiter.take('bucket', LIMIT).finally(() => {
    settled = true;
  });
  await new Promise(setImmediate);
  expect(settled).toBe(false);
  grant(BLOCK);
  expect((await overCredit).allowed).toBe(true);
});

/** One process whose shared bucket grants what `grant` says. */
function startProcess(grant: (count: number) => number) {
  let time = 1_000_000;
  const leases: number[] = [];
  const lease: LeaseTokens = async (_bucket, _limit, count) => {
    leases.push(count);
    return grant(count);
  };
  const limiter = createRateLimiter({ lease, logger, now: () => time });
  return {
    leases,
    advance: (milliseconds: number) => {
      time += milliseconds;
    },
    async take(limit = LIMIT, bucket = 'bucket', times = 1) {
      let verdict = await limiter.take(bucket, limit);
      for (let time = 1; time < times; time += 1) verdict = await limiter.take(bucket, limit);
      return verdict;
    },
  };
}
const grantAll = (count: number) => count;

describe('a verdict', () => {
  test('counts what returned since the last request, up to the burst', async () => {
    const { advance, take } = startProcess(grantAll);
    expect(await take(LIMIT, 'bucket', 50)).toMatchObject({ remaining: 50, resetSeconds: 5 });
    advance(2_000);
    expect(await take()).toMatchObject({ remaining: 69, resetSeconds: 4 });
    advance(3_600_000);
    expect(await take()).toMatchObject({ remaining: 99, resetSeconds: 1 });
  });

  test('has nothing left, and never less, where more pass than the burst', async () => {
    expect(await startProcess(grantAll).take(LIMIT, 'bucket', 150)).toMatchObject({
      allowed: true,
      remaining: 0,
      resetSeconds: 10,
    });
  });

  test('has nothing left once the shared bucket is empty', async () => {
    const { take } = startProcess(() => 0);
    await take();
    expect(await take()).toMatchObject({ allowed: true, remaining: 0 });
  });

  test.each([
    { perSecond: 10, retryAfterSeconds: 1 },
    { perSecond: 0.1, retryAfterSeconds: 10 },
    { perSecond: 0.3, retryAfterSeconds: 4 },
  ])('asks to wait until one request returns, and a second at least: %j', async (expected) => {
    const limit = { perSecond: expected.perSecond, burst: 100 };
    const verdict = await startProcess(() => 0).take(limit, 'bucket', BLOCK + 1);
    expect(verdict).toMatchObject({
      allowed: false,
      limit: 100,
      remaining: 0,
      retryAfterSeconds: expected.retryAfterSeconds,
    });
  });
});

describe('an empty shared bucket', () => {
  test('is asked again only after the time in which half a block returns', async () => {
    const { advance, leases, take } = startProcess(() => 0);
    expect(await take(LIMIT, 'bucket', BLOCK)).toMatchObject({ allowed: true });
    expect(await take()).toMatchObject({ allowed: false });
    expect(leases).toHaveLength(1);
    advance(((BLOCK / 2) * 1_000) / LIMIT.perSecond - 1);
    expect(await take()).toMatchObject({ allowed: false });
    expect(leases).toHaveLength(1);
    advance(1);
    // Credit that was used up does not make the bucket emptier than empty.
    expect(await take()).toMatchObject({ allowed: false, resetSeconds: 10 });
    // A block, and the credit that requests have used.
    expect(leases.slice(1)).toEqual([2 * BLOCK]);
  });

  test('lets one request ahead where a tenth of the burst is less than one', async () => {
    const { take } = startProcess(() => 0);
    const limit = { perSecond: 1, burst: 5 };
    expect((await take(limit)).allowed).toBe(true);
    expect((await take(limit)).allowed).toBe(false);
  });
});

test('a process leases a block when it has none left, and once at a time', async () => {
  const { leases, take } = startProcess(grantAll);
  await take();
  expect(leases).toEqual([BLOCK + 1]);
  await take(LIMIT, 'bucket', BLOCK - 1);
  expect(leases).toEqual([BLOCK + 1]);
  await take();
  expect(leases).toEqual([BLOCK + 1, BLOCK]);

  let asked = 0;
  const waiting = createRateLimiter({
    lease: () => {
      asked += 1;
      return new Promise<number>(() => undefined);
    },
    logger,
  });
  for (let index = 0; index < BLOCK; index += 1) await waiting.take('bucket', LIMIT);
  expect(asked).toBe(1);
});

test('a lease that fails is logged, and its requests are granted', async () => {
  const warn = jest.fn();
  const limiter = createRateLimiter({
    lease: () => Promise.reject(new Error('down')),
    logger: { warn } as never,
    now: () => 0,
  });
  for (let index = 0; index < BLOCK; index += 1) await limiter.take('bucket', LIMIT);
  await new Promise(setImmediate);
  expect(warn).toHaveBeenCalledTimes(1);
  expect(warn).toHaveBeenCalledWith({ err: new Error('down') }, expect.any(String));
});

describe('with 10,000 buckets, one idle for more than a minute is forgotten', () => {
  /** So slow that no token returns within the test. */
  const SLOW = { perSecond: 0.001, burst: 10 };
  test.each([
    { known: 10_000, idleMs: 60_001, left: 9 },
    { known: 10_000, idleMs: 60_000, left: 4 },
    { known: 9_999, idleMs: 60_001, left: 4 },
  ])('$known buckets, $idleMs ms: $left requests left', async ({ known, idleMs, left }) => {
    const { advance, take } = startProcess(grantAll);
    await take(SLOW, 'idle', 5);
    advance(1_000);
    for (let other = 1; other < known; other += 1) await take(SLOW, `bucket ${other}`, other === 1 ? 5 : 1);
    advance(idleMs - 1_000);
    await take(SLOW, 'new');
    expect(await take(SLOW, 'idle')).toMatchObject({ remaining: left });
    expect(await take(SLOW, 'bucket 1')).toMatchObject({ remaining: 4 });
  });
});

describe('buckets in memory', () => {
  const SLOW = { perSecond: 0.001, burst: 10 };
  const start = () => {
    let time = 1_000_000;
    return {
      lease: leaseFromMemory(() => time),
      advance: (milliseconds: number) => {
        time += milliseconds;
      },
    };
  };

  test('grant what is asked, and keep fractions of tokens', async () => {
    const { lease, advance } = start();
    expect(await lease('bucket', LIMIT, 40)).toBe(40);
    expect(await lease('bucket', LIMIT, 100)).toBe(60);
    expect(await lease('another', LIMIT, 100)).toBe(100);
    advance(50);
    expect(await lease('bucket', LIMIT, 1)).toBe(0);
    advance(50);
    expect(await lease('bucket', LIMIT, 2)).toBe(1);
  });

  test.each([
    { known: 10_000, idleMs: 60_000, granted: 10 },
    { known: 10_000, idleMs: 59_999, granted: 1 },
    { known: 9_999, idleMs: 60_000, granted: 1 },
  ])('forget one that is idle: $known buckets, $idleMs ms', async ({ known, idleMs, granted }) => {
    const { lease, advance } = start();
    for (const bucket of ['used again', 'idle']) await lease(bucket, SLOW, 9);
    advance(30_000);
    await lease('used again', SLOW, 1);
    for (let other = 3; other < known; other += 1) await lease(`bucket ${other}`, SLOW, 1);
    advance(idleMs - 30_000);
    await lease('new', SLOW, 1);
    expect(await lease('used again', SLOW, 10)).toBe(0);
    expect(await lease('idle', SLOW, 10)).toBe(granted);
  });
});
