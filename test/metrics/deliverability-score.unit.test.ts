import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { scoreDeliverability } from '../../domain/metrics/deliverability-score.ts';
import { type MetricCounts, zeroCounts } from '../../domain/metrics/metric-counts.ts';

const counted = (counts: Partial<MetricCounts>) => ({ ...zeroCounts(), ...counts });

test('matches the example in docs/metrics.md', () => {
  expect(
    scoreDeliverability(
      counted({ attempted: 2_000, sent: 1_990, delivered: 1_900, bounced: 60, complained: 3, rejected: 41 }),
    ),
  ).toEqual({
    score: 74,
    deliveryRate: 0.95,
    bounceRate: 0.03,
    complaintRate: 0.0015,
    rejectionRate: 0.020088,
    sampleSize: 2_000,
    warnings: [
      'The bounce rate is 3%; the warning threshold is 2%.',
      'The complaint rate is 0.15%; the warning threshold is 0.1%.',
    ],
  });
});

test('is 100 without failures and 0 with only failures', () => {
  expect(scoreDeliverability(counted({ attempted: 20, sent: 20 }))).toMatchObject({
    score: 100,
    warnings: [],
  });
  expect(
    scoreDeliverability(counted({ attempted: 20, bounced: 20, complained: 20, rejected: 20 })),
  ).toMatchObject({
    score: 0,
    warnings: [
      'The bounce rate is 100%; the critical threshold is 5%.',
      'The complaint rate is 100%; the critical threshold is 0.3%.',
    ],
  });
});

test('returns no score for 19 sends and zero rates for none', () => {
  expect(scoreDeliverability(counted({ attempted: 19, bounced: 1 }))).toMatchObject({
    score: null,
    bounceRate: 0.052632,
    warnings: ['A score needs at least 20 sends; there were 19.'],
  });
  expect(scoreDeliverability(zeroCounts())).toMatchObject({ score: null, bounceRate: 0, rejectionRate: 0 });
});

test.each([
  [{ bounced: 19 }, []],
  [{ bounced: 20 }, ['The bounce rate is 2%; the warning threshold is 2%.']],
  [{ bounced: 49 }, ['The bounce rate is 4.9%; the warning threshold is 2%.']],
  [{ bounced: 50 }, ['The bounce rate is 5%; the critical threshold is 5%.']],
  [{ complained: 1 }, ['The complaint rate is 0.1%; the warning threshold is 0.1%.']],
  [{ complained: 3 }, ['The complaint rate is 0.3%; the critical threshold is 0.3%.']],
])('%j of 1,000 sends produce the warnings %j', (counts, warnings) => {
  expect(scoreDeliverability(counted({ attempted: 1_000, ...counts })).warnings).toEqual(warnings);
});

test('keeps score and rates within bounds and never scores worse counts higher', () => {
  const number = fc.nat(100_000);
  fc.assert(
    fc.property(
      fc.record({
        attempted: number,
        delivered: number,
        bounced: number,
        complained: number,
        rejected: number,
      }),
      fc.constantFrom('bounced' as const, 'complained' as const, 'rejected' as const),
      (values, worsened) => {
        const counts = counted(values);
        const result = scoreDeliverability(counts);
        for (const rate of [
          result.bounceRate,
          result.complaintRate,
          result.deliveryRate,
          result.rejectionRate,
        ])
          expect(rate >= 0 && rate <= 1).toBe(true);
        const after = scoreDeliverability({ ...counts, [worsened]: counts[worsened] + 1 });
        if (result.score === null) expect(after.score).toBeNull();
        else {
          expect(result.score >= 0 && result.score <= 100).toBe(true);
          expect(after.score ?? 101).toBeLessThanOrEqual(result.score);
        }
      },
    ),
  );
});
