import { execFileSync } from 'node:child_process';
import { expect, test } from '@jest/globals';
import { assertPortsFree, findFreePort } from '../../dev/stack/ports.ts';

const FIND = `
  const { findFreePort } = await import('${new URL('../../dev/stack/ports.ts', import.meta.url).href}');
  process.stdout.write(String(await findFreePort()));`;

test('a port is not returned again while others are free, so a test can restart what used it', async () => {
  const ports = await Promise.all(Array.from({ length: 20 }, findFreePort));
  for (let count = 0; count < 20; count += 1) ports.push(await findFreePort());
  expect(new Set(ports).size).toBe(ports.length);
});

test('a worker of Jest has ports that what it starts does not find, below those of outgoing connections', async () => {
  const own = await findFreePort();
  expect(own).toBeGreaterThanOrEqual(20_000);
  expect(own).toBeLessThan(30_000);
  const found = execFileSync(process.execPath, ['--input-type=module', '--eval', FIND], { env: process.env });
  expect(Number(found)).toBeGreaterThanOrEqual(15_000);
  expect(Number(found)).toBeLessThan(20_000);
});

test('a port that is required, and that nothing listens on yet, is not found for something else', async () => {
  const found = await findFreePort();
  const required = [1, 2, 3].map((step) => ({ port: found + step, purpose: 'a server', variable: 'PORT' }));
  await assertPortsFree(required);
  const next = [await findFreePort(), await findFreePort(), await findFreePort()];
  expect(next.filter((port) => required.some((taken) => taken.port === port))).toEqual([]);
});
