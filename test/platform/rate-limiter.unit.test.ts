import { describe, expect, test } from '@jest/globals';
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
