import { expect, test } from '@jest/globals';
import { createFairnessWeights } from '../../platform/outbox/fairness-weights.ts';

test('the keys of a holder share one weight', () => {
  const { weightOf } = createFairnessWeights();
  expect(weightOf('org_1', 'whe_1')).toBe(1);
  expect(weightOf('org_1', 'whe_1')).toBe(1);
  expect(weightOf('org_1', 'whe_2')).toBe(1 / 2);
  expect(weightOf('org_1', 'whe_1')).toBe(1 / 2);
  expect(weightOf('org_2', 'whe_3')).toBe(1);
});

test('a key counts for a minute after its last start', () => {
  let nowMs = 0;
  const { weightOf } = createFairnessWeights(() => nowMs);
  weightOf('org_1', 'whe_1');
  nowMs = 30_000;
  weightOf('org_1', 'whe_2');
  nowMs = 59_999;
  expect(weightOf('org_1', 'whe_3')).toBe(1 / 3);
  nowMs = 60_000;
  expect(weightOf('org_1', 'whe_3')).toBe(1 / 2);
  nowMs = 90_000;
  expect(weightOf('org_1', 'whe_3')).toBe(1);
});

test('a thousand keys of a holder are counted at most', () => {
  const { weightOf } = createFairnessWeights();
  for (let index = 0; index < 1_500; index += 1) weightOf('org_1', `whe_${index}`);
  expect(weightOf('org_1', 'whe_0')).toBe(1 / 1_000);
});
