import { afterEach, expect, jest, test } from '@jest/globals';
import { pino } from 'pino';
import { createDependencies, type Probe } from '../../platform/dependencies.ts';

afterEach(() => void jest.useRealTimers());

const available: Probe = async () => undefined;

function arrange(storage: Probe, now?: () => number) {
  const lines: Record<string, unknown>[] = [];
  const dependencies = createDependencies({
    probes: { database: available, temporal: available, storage },
    logger: pino({}, { write: (line) => void lines.push(JSON.parse(line)) }),
    ...(now ? { now } : {}),
  });
  return { dependencies, lines };
}

test('logs when a dependency becomes unavailable and available, not each time it is asked', async () => {
  let now = 0;
  let isAway = true;
  const { dependencies, lines } = arrange(
    async () => {
      if (isAway) throw new Error('connect ECONNREFUSED');
    },
    () => now,
  );
  const look = async () => {
    now += 10_000;
    return dependencies.read();
  };
  expect(await look()).toEqual({ database: 'ok', temporal: 'ok', storage: 'unavailable' });
  await look();
  isAway = false;
  expect(await look()).toEqual({ database: 'ok', temporal: 'ok', storage: 'ok' });
  await look();
  expect(lines.map(({ msg, dependency }) => [msg, dependency])).toEqual([
    ['dependency is unavailable', 'storage'],
    ['dependency is available again', 'storage'],
  ]);
});

test('asks each dependency once for callers within two seconds', async () => {
  let now = 0;
  let asked = 0;
  const { dependencies } = arrange(
    async () => {
      asked += 1;
    },
    () => now,
  );
  await Promise.all(Array.from({ length: 100 }, () => dependencies.read()));
  expect(asked).toBe(1);
  now = 2_000;
  await dependencies.read();
  expect(asked).toBe(2);
});

test('a dependency that does not answer is unavailable before a health check times out', async () => {
  jest.useFakeTimers();
  const { dependencies } = arrange(() => new Promise(() => undefined));
  const states = dependencies.read();
  await jest.advanceTimersByTimeAsync(2_500);
  await expect(states).resolves.toMatchObject({ storage: 'unavailable', database: 'ok' });
});
