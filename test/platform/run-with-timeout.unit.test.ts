import { describe, expect, test } from '@jest/globals';
import { runWithTimeout } from '../../platform/run-with-timeout.ts';
import { expectWithin } from '../support/expect-within.ts';

test('returns the result of work that finishes in time', () => {
  expect(runWithTimeout(1_000, () => ['done'])).toEqual(['done']);
});

test('rethrows the error of failing work', () => {
  const failure = new Error('no');
  expect(() =>
    runWithTimeout(1_000, () => {
      throw failure;
    }),
  ).toThrow(failure);
});

test.each([
  [
    'a loop',
    () => {
      for (;;);
    },
  ],
  ['a regular expression', () => /^(?:a+)+$/.test(`${'a'.repeat(60)}b`)],
])('stops %s that does not end', async (_what, work: () => boolean) => {
  expect(await expectWithin(1_000, () => runWithTimeout(50, work))).toBeNull();
});

describe('work that gets no processor time', () => {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  const sleep = (ms: number) => Atomics.wait(sleeper, 0, 0, ms);

  test('is tried again: the machine was busy, and the input may be harmless', () => {
    let tries = 0;
    const work = () => {
      tries += 1;
      if (tries === 1) sleep(10_000);
      return 'done';
    };
    expect(runWithTimeout(50, work)).toBe('done');
    expect(tries).toBe(2);
  });

  test('is given up after three times', () => {
    let tries = 0;
    const work = () => {
      tries += 1;
      return sleep(10_000);
    };
    expect(runWithTimeout(50, work)).toBeNull();
    expect(tries).toBe(3);
  });
});
