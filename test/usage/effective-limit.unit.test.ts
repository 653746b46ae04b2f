import { describe, expect, test } from '@jest/globals';
import {
  effectiveLimit,
  type LimitInputs,
  percentageOf,
  remainingQuota,
} from '../../domain/usage/effective-limit.ts';

test.each([
  [0, 3_000, 0],
  [2_412, 3_000, 80.4],
  [911, 3_000, 30.37],
  [3_000, 3_000, 100],
  [9_000, 3_000, 300],
  // Below the limit, rounding never yields 100.
  [99_999, 100_000, 99.99],
  [Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER, 99.99],
  [0, 0, 100],
  [5, 0, 100],
  [5, null, 0],
])('%d of %p is %d %%', (current, limit, expected) => {
  expect(percentageOf(current, limit)).toBe(expected);
});

describe('the limit in effect', () => {
  const inputs = (change: Partial<LimitInputs>): LimitInputs => ({
    tier: 'developer',
    override: null,
    customLimit: null,
    ...change,
  });
  const raised = { limit: 20_000, kind: 'soft' as const };
  const unlimited = { limit: null, kind: 'soft' as const };

  test.each([
    [
      'is that of the tier, which a soft one does not enforce',
      inputs({}),
      { limit: 10_000, kind: 'soft', source: 'tier', enforcedLimit: null },
    ],
    [
      'is that of the tier, which a hard one enforces',
      inputs({ tier: 'free' }),
      { limit: 3_000, kind: 'hard', source: 'tier', enforcedLimit: 3_000 },
    ],
    [
      'is an override, with its own kind',
      inputs({ tier: 'free', override: raised }),
      { limit: 20_000, kind: 'soft', source: 'override', enforcedLimit: null },
    ],
    [
      'is none by an override without limit',
      inputs({ tier: 'free', override: unlimited }),
      { limit: null, kind: 'soft', source: 'override', enforcedLimit: null },
    ],
    [
      'is the own one below that of the tier, and is enforced',
      inputs({ customLimit: 500 }),
      { limit: 500, kind: 'hard', source: 'own', enforcedLimit: 500 },
    ],
    [
      'is the own one that equals that of the tier',
      inputs({ customLimit: 10_000 }),
      { limit: 10_000, kind: 'hard', source: 'own', enforcedLimit: 10_000 },
    ],
    [
      'is the own one where nothing else limits',
      inputs({ tier: 'enterprise', customLimit: 500 }),
      { limit: 500, kind: 'hard', source: 'own', enforcedLimit: 500 },
    ],
    [
      'is that of a lower tier, and the own one stays enforced',
      inputs({ customLimit: 12_000 }),
      { limit: 10_000, kind: 'soft', source: 'tier', enforcedLimit: 12_000 },
    ],
    [
      'is that of a hard tier below the own one',
      inputs({ tier: 'free', customLimit: 12_000 }),
      { limit: 3_000, kind: 'hard', source: 'tier', enforcedLimit: 3_000 },
    ],
  ])('%s', (_name, given, expected) => {
    expect(effectiveLimit('messages_sent', given)).toEqual(expected);
  });

  test('leaves what is enforced, and never less than nothing', () => {
    const limit = effectiveLimit('messages_sent', inputs({ tier: 'free' }));
    expect([0, 2_999, 3_000, 4_000].map((used) => remainingQuota(limit, used))).toEqual([3_000, 1, 0, 0]);
    expect(remainingQuota(effectiveLimit('messages_sent', inputs({})), 99_999)).toBeNull();
  });
});
