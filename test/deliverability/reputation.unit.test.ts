import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  findPauseReason,
  minSendsBelowThreshold,
  needsEvaluation,
} from '../../domain/deliverability/reputation.ts';

test.each([
  [{ sends: 49, bounces: 49, complaints: 0 }, false],
  [{ sends: 50, bounces: 2, complaints: 0 }, false],
  [{ sends: 50, bounces: 3, complaints: 0 }, true],
  [{ sends: 100, bounces: 5, complaints: 0 }, false],
  [{ sends: 100, bounces: 6, complaints: 0 }, true],
  [{ sends: 499, bounces: 0, complaints: 20 }, false],
  [{ sends: 500, bounces: 0, complaints: 1 }, false],
  [{ sends: 500, bounces: 0, complaints: 2 }, true],
  [{ sends: 1_999, bounces: 0, complaints: 2 }, true],
  [{ sends: 2_000, bounces: 0, complaints: 2 }, false],
])('findPauseReason for %j: paused is %s', (stats, paused) =>
  expect(findPauseReason(stats) !== null).toBe(paused),
);

test('counting sends only up to minSendsBelowThreshold never changes the result', () => {
  fc.assert(
    fc.property(fc.nat(10_000), fc.nat(500), fc.nat(20), (sends, bounces, complaints) => {
      const counted = Math.min(sends, minSendsBelowThreshold({ bounces, complaints }));
      expect(findPauseReason({ sends: counted, bounces, complaints })).toBe(
        findPauseReason({ sends, bounces, complaints }),
      );
    }),
  );
});

test('evaluates only some of many outcomes', () => {
  const evaluations = (kind: 'bounces' | 'complaints', upTo: number) =>
    Array.from({ length: upTo }, (_, index) => needsEvaluation(kind, index + 1, 1)).filter(Boolean).length;
  expect(evaluations('bounces', 100)).toBe(100);
  expect(evaluations('bounces', 10_000)).toBeLessThan(700);
  expect(evaluations('complaints', 10)).toBe(10);
  expect(needsEvaluation('bounces', 5_000, 0)).toBe(false);
});
