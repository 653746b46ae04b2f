import { describe, expect, test } from '@jest/globals';
import { createRestWhileBusy } from '../../platform/concurrency/rest-while-busy.ts';

/**
 * A machine whose clock only the test and the pauses move.
 *
 * @param idleAt how many processors are idle at a time.
 */
function arrange(idleAt: (ms: number) => number) {
  let [clockMs, idleMs] = [0, 0];
  const rest = createRestWhileBusy({
    now: () => clockMs,
    readIdleMs: () => idleMs,
    async pause(ms) {
      idleMs += idleAt(clockMs) * ms;
      clockMs += ms;
    },
  });
  /** @returns how long it rests after that much work. */
  return async (workMs: number) => {
    clockMs += workMs;
    const before = clockMs;
    await rest();
    return clockMs - before;
  };
}

describe('background work', () => {
  test('does not rest before it has worked for a quarter of a second', async () => {
    const restAfter = arrange(() => 0);
    expect(await restAfter(249)).toBe(0);
    expect(await restAfter(1)).toBeGreaterThan(0);
  });

  test('goes on after one look while half a processor is idle', async () => {
    const restAfter = arrange(() => 0.5);
    expect(await restAfter(300)).toBe(50);
    expect(await restAfter(300)).toBe(50);
  });

  test('rests three times as long as it worked while the processors are busy', async () => {
    const restAfter = arrange(() => 0.4);
    expect(await restAfter(300)).toBe(900);
    expect(await restAfter(400)).toBe(1_200);
  });

  test('goes on as soon as a processor becomes idle', async () => {
    const restAfter = arrange((ms) => (ms < 500 ? 0 : 2));
    expect(await restAfter(300)).toBe(250);
  });

  test('does not rest for more than two seconds', async () => {
    expect(await arrange(() => 0)(10_000)).toBe(2_000);
  });
});
