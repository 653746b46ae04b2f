import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from '@jest/globals';
import { createSpareCpu } from '../../platform/concurrency/spare-cpu.ts';

const WORK_MS = 300;

/** @param idleProcessors how many processors of the machine are idle. */
function arrange(idleProcessors: () => number) {
  const clock = { ms: 0 };
  let [idleMs, readAt] = [0, performance.now()];
  const rest = createSpareCpu({
    now: () => performance.now() + clock.ms,
    readIdleMs() {
      idleMs += idleProcessors() * (performance.now() - readAt);
      readAt = performance.now();
      return idleMs;
    },
  });
  const measure = async () => {
    const startedAt = performance.now();
    await rest();
    return performance.now() - startedAt;
  };
  return { clock, measure };
}

describe('work that uses spare processor time', () => {
  test('does not rest before it has worked for a quarter of a second', async () => {
    const { clock, measure } = arrange(() => 0);
    clock.ms = 200;
    expect(await measure()).toBeLessThan(25);
    clock.ms = WORK_MS;
    expect(await measure()).toBeGreaterThan(2 * WORK_MS);
  });

  test('goes on at once while a processor is idle', async () => {
    const { clock, measure } = arrange(() => 1);
    clock.ms = WORK_MS;
    expect(await measure()).toBeLessThan(WORK_MS);
  });

  test('rests three times as long as it worked while no processor is idle, and goes on then', async () => {
    const { clock, measure } = arrange(() => 0.2);
    clock.ms = WORK_MS;
    const rest = await measure();
    expect(rest).toBeGreaterThan(2.9 * WORK_MS);
    expect(rest).toBeLessThan(4 * WORK_MS);
  });

  test('ends its rest when a processor becomes idle', async () => {
    let idle = 0;
    const { clock, measure } = arrange(() => idle);
    clock.ms = WORK_MS;
    const rest = measure();
    await pause(150);
    idle = 2;
    expect(await rest).toBeLessThan(2 * WORK_MS);
  });

  test('does not rest for more than two seconds', async () => {
    const { clock, measure } = arrange(() => 0);
    clock.ms = 10_000;
    expect(await measure()).toBeLessThan(3_000);
  });
});
