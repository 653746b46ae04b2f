import { expect, test } from '@jest/globals';
import { createSignedCallers } from '../../api/plugins/signed-callers.ts';

let time: number;
const create = () => {
  time = 1_000_000;
  return createSignedCallers(() => time);
};
const DAY_MS = 86_400_000;

function failUntilRefused(callers: ReturnType<typeof create>, address: string): number {
  for (let failures = 0; failures < 1_000; failures += 1) {
    const end = callers.begin(address);
    if (!end) return failures;
    end('refused');
  }
  return Number.POSITIVE_INFINITY;
}

test('limits the failures of a network, and forgets them within seconds', () => {
  const callers = create();
  expect(failUntilRefused(callers, '192.0.2.1')).toBe(200);
  expect(callers.begin('192.0.2.2')).not.toBeNull();
  time += 1_000;
  expect(failUntilRefused(callers, '192.0.2.1')).toBe(20);
  time += 60_000;
  expect(failUntilRefused(callers, '192.0.2.1')).toBe(200);
});

test('counts requests in progress, and each request once', () => {
  const callers = create();
  const ends = Array.from({ length: 200 }, () => callers.begin('2001:db8::1'));
  expect(ends).not.toContain(null);
  expect(callers.begin('2001:db8::2')).toBeNull();
  for (const end of ends) for (const outcome of ['unknown', 'refused'] as const) end?.(outcome);
  expect(failUntilRefused(callers, '2001:db8::3')).toBe(200);
});

test.each([
  ['unknown', 'unknown', 200],
  ['unknown', 'proven', 200],
  ['refused', 'refused', 199],
  ['refused', 'proven', 199],
] as const)('counts a request that ends as %s and again as %s by its first end', (first, second, left) => {
  const callers = create();
  const end = callers.begin('192.0.2.1');
  end?.(first);
  end?.(second);
  expect(failUntilRefused(callers, '192.0.2.1')).toBe(left);
});

test('does not refuse a network from which a proven request came, for a day', () => {
  const callers = create();
  callers.begin('192.0.2.1')?.('proven');
  expect(failUntilRefused(callers, '192.0.2.1')).toBe(Number.POSITIVE_INFINITY);
  time += DAY_MS - 1_000;
  callers.begin('192.0.2.1')?.('proven');
  time += DAY_MS - 1_000;
  expect(failUntilRefused(callers, '192.0.2.1')).toBe(Number.POSITIVE_INFINITY);
  time += 2_000;
  expect(callers.begin('192.0.2.1')).toBeNull();
});
