import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  changeRetention,
  DAY_MS,
  isDeleting,
  isReminderDue,
  isStricter,
  postponeRetention,
  type RetentionPlan,
  reviewRetention,
} from '../../domain/retention/retention-plan.ts';

const START = Date.parse('2026-12-01T14:20:00.000Z');
const HOUR_MS = DAY_MS / 24;
const at = (days: number) => new Date(START + days * DAY_MS);

const newPlan = (applied = 0): RetentionPlan => ({
  retentionDays: applied,
  appliedDays: applied,
  appliedSince: applied === 0 ? null : at(-100),
  steps: [],
  postponedUntil: null,
  resumeWarnedAt: null,
  remindedAt: null,
  version: 0,
  changedAt: at(-100),
});

/** Simulates the daily runs at 03:00 UTC and returns their warnings. */
function simulateRuns(plan: RetentionPlan, fromDay: number, toDay: number) {
  const warnings: { day: number; kind: string; days: number }[] = [];
  const first = Math.ceil((START + fromDay * DAY_MS - 3 * HOUR_MS) / DAY_MS) * DAY_MS + 3 * HOUR_MS;
  for (let time = first; time < START + toDay * DAY_MS; time += DAY_MS)
    for (const { kind, days } of reviewRetention(plan, new Date(time)))
      warnings.push({ day: Math.floor((time - START) / DAY_MS), kind, days });
  return warnings;
}

describe('a shorter policy', () => {
  test('is announced immediately and one day before, and starts after seven days', () => {
    const plan = newPlan();
    expect(changeRetention(plan, 30, at(0))).toBe(true);
    expect(plan).toMatchObject({ retentionDays: 30, appliedDays: 0 });
    expect(reviewRetention(plan, at(0))).toMatchObject([
      { kind: 'announcement', days: 30, firstDeletionAt: at(7) },
    ]);
    expect(simulateRuns(plan, 0, 7)).toEqual([{ day: 6, kind: 'final', days: 30 }]);
    expect(isDeleting(plan)).toBe(false);
    expect(simulateRuns(plan, 7, 9)).toEqual([]);
    expect(plan).toMatchObject({ appliedDays: 30, steps: [] });
    expect(isDeleting(plan)).toBe(true);
  });

  test('leaves the old one in effect until then', () => {
    const plan = newPlan(90);
    changeRetention(plan, 30, at(0));
    expect(plan.appliedDays).toBe(90);
    expect(isDeleting(plan)).toBe(true);
  });

  test('set again changes nothing', () => {
    const plan = newPlan();
    changeRetention(plan, 30, at(0));
    const before = structuredClone(plan);
    expect(changeRetention(plan, 30, at(3))).toBe(false);
    expect(plan).toEqual(before);
  });

  test('shortened further keeps the announced step and adds a new notice for the stricter part', () => {
    const plan = newPlan();
    changeRetention(plan, 30, at(0));
    reviewRetention(plan, at(0));
    changeRetention(plan, 10, at(4));
    expect(reviewRetention(plan, at(4))).toMatchObject([
      { kind: 'announcement', days: 10, firstDeletionAt: at(11) },
    ]);
    simulateRuns(plan, 4, 8.5);
    expect(plan.appliedDays).toBe(30);
    simulateRuns(plan, 8.5, 12);
    expect(plan).toMatchObject({ appliedDays: 10, steps: [] });
  });

  test('lengthened while pending starts when the announced shorter one would have', () => {
    const plan = newPlan();
    changeRetention(plan, 10, at(0));
    reviewRetention(plan, at(0));
    changeRetention(plan, 60, at(5));
    expect(simulateRuns(plan, 5, 9)).toEqual([{ day: 6, kind: 'final', days: 60 }]);
    expect(plan.appliedDays).toBe(60);
  });

  test.each([0, 90, 200])('replaced by %i days ends immediately', (days) => {
    const plan = newPlan(90);
    changeRetention(plan, 30, at(0));
    changeRetention(plan, days, at(1));
    expect(plan).toMatchObject({ retentionDays: days, appliedDays: days, steps: [] });
    expect(simulateRuns(plan, 1, 20)).toEqual([]);
  });

  test('announced late starts seven days after the announcement', () => {
    const plan = newPlan();
    changeRetention(plan, 30, at(0));
    expect(reviewRetention(plan, at(5))).toMatchObject([{ kind: 'announcement', firstDeletionAt: at(12) }]);
  });

  test('waits for its final warning', () => {
    const plan = newPlan();
    changeRetention(plan, 30, at(0));
    reviewRetention(plan, at(0));
    expect(reviewRetention(plan, at(9))).toMatchObject([{ kind: 'final', firstDeletionAt: at(10) }]);
    expect(plan.appliedDays).toBe(0);
    reviewRetention(plan, at(10));
    expect(plan.appliedDays).toBe(30);
  });
});

describe('a postponement', () => {
  test('moves the first deletion and its final warning', () => {
    const plan = newPlan();
    changeRetention(plan, 30, at(0));
    reviewRetention(plan, at(0));
    simulateRuns(plan, 0, 7);
    expect(postponeRetention(plan, 14, at(6.9))).toBe(true);
    expect(plan.postponedUntil).toEqual(at(21));
    expect(simulateRuns(plan, 7, 20.6)).toEqual([{ day: 20, kind: 'final', days: 30 }]);
    expect(isDeleting(plan)).toBe(false);
    simulateRuns(plan, 20.6, 22);
    expect(plan).toMatchObject({ appliedDays: 30, postponedUntil: null });
    expect(isDeleting(plan)).toBe(true);
  });

  test('stops daily deletion and warns the owners before it resumes', () => {
    const plan = newPlan(30);
    postponeRetention(plan, 10, at(0));
    expect(isDeleting(plan)).toBe(false);
    expect(simulateRuns(plan, 0, 10.5)).toEqual([{ day: 9, kind: 'final', days: 30 }]);
    expect(plan.postponedUntil).toEqual(at(10));
    expect(simulateRuns(plan, 10.5, 11)).toEqual([]);
    expect(isDeleting(plan)).toBe(true);
  });

  test('combined with a shorter policy warns once', () => {
    const plan = newPlan(30);
    changeRetention(plan, 10, at(0));
    reviewRetention(plan, at(0));
    postponeRetention(plan, 20, at(1));
    expect(simulateRuns(plan, 1, 23)).toEqual([{ day: 20, kind: 'final', days: 10 }]);
    expect(plan).toMatchObject({ appliedDays: 10, postponedUntil: null });
  });

  test('never makes a deletion happen earlier', () => {
    const plan = newPlan(30);
    postponeRetention(plan, 90, at(0));
    postponeRetention(plan, 1, at(1));
    expect(plan.postponedUntil).toEqual(at(90));
  });

  test('without a policy does nothing', () => {
    expect(postponeRetention(newPlan(), 1, at(0))).toBe(false);
  });

  test('ends when the policy is removed', () => {
    const plan = newPlan(30);
    postponeRetention(plan, 90, at(0));
    changeRetention(plan, 0, at(1));
    expect(plan.postponedUntil).toBeNull();
  });
});

test('sends the reminder once a month, but not in the month a policy took effect', () => {
  const plan = { ...newPlan(30), appliedSince: new Date('2026-12-09T03:00:00Z') };
  const due = (time: string) => isReminderDue(plan, new Date(time));
  expect(due('2026-12-31T03:00:00Z')).toBe(false);
  expect(due('2027-01-01T03:00:00Z')).toBe(true);
  plan.remindedAt = new Date('2027-01-01T03:00:00Z');
  expect(due('2027-01-31T03:00:00Z')).toBe(false);
  expect(due('2027-02-01T03:00:00Z')).toBe(true);
});

test('never deletes earlier than seven days after the announcement, for any sequence of changes', () => {
  const changeArbitrary = fc.oneof(
    fc.record({ kind: fc.constant('announcement' as const), days: fc.constantFrom(0, 1, 5, 10, 30, 90) }),
    fc.record({ kind: fc.constant('postpone' as const), days: fc.integer({ min: 1, max: 20 }) }),
    fc.record({ kind: fc.constant('wait' as const), days: fc.integer({ min: 0, max: 9 }) }),
  );
  fc.assert(
    fc.property(fc.array(changeArbitrary, { maxLength: 25 }), (changes) => {
      const plan = newPlan();
      const warnings: { kind: string; days: number; time: number }[] = [];
      let time = START;
      let applied = 0;
      const review = () => {
        for (const { kind, days } of reviewRetention(plan, new Date(time)))
          warnings.push({ kind, days, time });
        if (isDeleting(plan) && isStricter(plan.appliedDays, applied)) {
          const covering = warnings.filter(({ days }) => !isStricter(plan.appliedDays, days));
          expect(
            covering.some((warning) => warning.kind === 'announcement' && warning.time <= time - 7 * DAY_MS),
          ).toBe(true);
          expect(
            warnings.some((warning) => warning.kind === 'final' && warning.time <= time - 20 * HOUR_MS),
          ).toBe(true);
        }
        if (isDeleting(plan) || plan.appliedDays === 0) applied = plan.appliedDays;
        expect(isStricter(plan.appliedDays, plan.retentionDays)).toBe(false);
        expect(plan.steps.at(-1)?.days ?? plan.appliedDays).toBe(plan.retentionDays);
      };
      for (const { kind, days } of changes) {
        if (kind === 'announcement' && changeRetention(plan, days, new Date(time))) review();
        if (kind === 'postpone') postponeRetention(plan, days, new Date(time));
        for (let day = 0; kind === 'wait' && day < days; day += 1) {
          time += DAY_MS;
          review();
        }
        time += HOUR_MS;
      }
    }),
  );
});
