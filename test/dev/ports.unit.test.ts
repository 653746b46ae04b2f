import { afterEach, expect, test } from '@jest/globals';
import { findFreePort } from '../../dev/stack/ports.ts';

const worker = process.env.JEST_WORKER_ID;
afterEach(() => {
  process.env.JEST_WORKER_ID = worker;
});

async function findPorts(workerId: string): Promise<number[]> {
  process.env.JEST_WORKER_ID = workerId;
  const ports: number[] = [];
  for (let count = 0; count < 40; count += 1) ports.push(await findFreePort());
  return ports;
}

test('a port is not returned again while others are free, so a test can restart what used it', async () => {
  const ports = await findPorts('14');
  expect(new Set(ports).size).toBe(ports.length);
});

test('workers of Jest have ports of their own, below those of outgoing connections', async () => {
  const [one, other] = [await findPorts('13'), await findPorts('14')];
  expect(Math.min(...one)).toBeGreaterThanOrEqual(15_000);
  expect(Math.max(...one)).toBeLessThan(Math.min(...other));
  expect(Math.max(...other)).toBeLessThan(30_000);
});
