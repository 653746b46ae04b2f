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

/** The daily runs from one day to another, at 03:00 UTC, and what they told. */
function runs(plan: RetentionPlan, fromDay: number, toDay: number) {
  const told: { day: number; kind: string; days: number }[] = [];
  const first = Math.ceil((START + fromDay * DAY_MS - 3 * HOUR_MS) / DAY_MS) * DAY_MS + 3 * HOUR_MS;
  for (let time = first; time < START + toDay * DAY_MS; time += DAY_MS)
    for (const { kind, days } of reviewRetention(plan, new Date(time)))
      told.push({ day: Math.floor((time - START) / DAY_MS), kind, days });
  return told;
}

describe('a shorter policy', () => {
  test('is announced at once and a day before, and begins after seven days', () => {
    const plan = newPlan();
    expect(changeRetention(plan, 30, at(0))).toBe(true);
    expect(plan).toMatchObject({ retentionDays: 30, appliedDays: 0 });
    expect(reviewRetention(plan, at(0))).toMatchObject([{ kind: 'set', days: 30, firstDeletionAt: at(7) }]);
    expect(runs(plan, 0, 7)).toEqual([{ day: 6, kind: 'tomorrow', days: 30 }]);
    expect(isDeleting(plan)).toBe(false);
    expect(runs(plan, 7, 9)).toEqual([]);
    expect(plan).toMatchObject({ appliedDays: 30, steps: [] });
    expect(isDeleting(plan)).toBe(true);
  });

  test('leaves the old one in force until then', () => {
    const plan = newPlan(90);
    changeRetention(plan, 30, at(0));
    expect(plan.appliedDays).toBe(90);
    expect(isDeleting(plan)).toBe(true);
  });

  test('set again is no change', () => {
    const plan = newPlan();
    changeRetention(plan, 30, at(0));
    const before = structuredClone(plan);
    expect(changeRetention(plan, 30, at(3))).toBe(false);
    expect(plan).toEqual(before);
  });

  test('made shorter still keeps what was announced, and waits anew for the stricter part', () => {
    const plan = newPlan();
    changeRetention(plan, 30, at(0));
    reviewRetention(plan, at(0));
    changeRetention(plan, 10, at(4));
    expect(reviewRetention(plan, at(4))).toMatchObject([{ kind: 'set', days: 10, firstDeletionAt: at(11) }]);
    runs(plan, 4, 8.5);
    expect(plan.appliedDays).toBe(30);
    runs(plan, 8.5, 12);
    expect(plan).toMatchObject({ appliedDays: 10, steps: [] });
  });

  test('made longer while it waits begins when the shorter one would have, which was told', () => {
    const plan = newPlan();
    changeRetention(plan, 10, at(0));
    reviewRetention(plan, at(0));
    changeRetention(plan, 60, at(5));
    expect(runs(plan, 5, 9)).toEqual([{ day: 6, kind: 'tomorrow', days: 60 }]);
    expect(plan.appliedDays).toBe(60);
  });

  test.each([0, 90, 200])('given up for %i days ends at once', (days) => {
    const plan = newPlan(90);
    changeRetention(plan, 30, at(0));
    changeRetention(plan, days, at(1));
    expect(plan).toMatchObject({ retentionDays: days, appliedDays: days, steps: [] });
    expect(runs(plan, 1, 20)).toEqual([]);
  });

  test('whose announcement was late begins seven days after it', () => {
    const plan = newPlan();
    changeRetention(plan, 30, at(0));
    expect(reviewRetention(plan, at(5))).toMatchObject([{ kind: 'set', firstDeletionAt: at(12) }]);
  });

  test('nobody was warned of the day before waits for that', () => {
    const plan = newPlan();
    changeRetention(plan, 30, at(0));
    reviewRetention(plan, at(0));
    expect(reviewRetention(plan, at(9))).toMatchObject([{ kind: 'tomorrow', firstDeletionAt: at(10) }]);
    expect(plan.appliedDays).toBe(0);
    reviewRetention(plan, at(10));
    expect(plan.appliedDays).toBe(30);
  });
});

describe('a postponement', () => {
  test('moves the first deletion, and its last warning', () => {
    const plan = newPlan();
    changeRetention(plan, 30, at(0));
    reviewRetention(plan, at(0));
    runs(plan, 0, 7);
    expect(postponeRetention(plan, 14, at(6.9))).toBe(true);
    expect(plan.postponedUntil).toEqual(at(21));
    expect(runs(plan, 7, 20.6)).toEqual([{ day: 20, kind: 'tomorrow', days: 30 }]);
    expect(isDeleting(plan)).toBe(false);
    runs(plan, 20.6, 22);
    expect(plan).toMatchObject({ appliedDays: 30, postponedUntil: null });
    expect(isDeleting(plan)).toBe(true);
  });

  test('stops what deletes daily, and the owners hear of it before it goes on', () => {
    const plan = newPlan(30);
    postponeRetention(plan, 10, at(0));
    expect(isDeleting(plan)).toBe(false);
    expect(runs(plan, 0, 10.5)).toEqual([{ day: 9, kind: 'tomorrow', days: 30 }]);
    expect(plan.postponedUntil).toEqual(at(10));
    expect(runs(plan, 10.5, 11)).toEqual([]);
    expect(isDeleting(plan)).toBe(true);
  });

  test('together with a shorter policy is told once', () => {
    const plan = newPlan(30);
    changeRetention(plan, 10, at(0));
    reviewRetention(plan, at(0));
    postponeRetention(plan, 20, at(1));
    expect(runs(plan, 1, 23)).toEqual([{ day: 20, kind: 'tomorrow', days: 10 }]);
    expect(plan).toMatchObject({ appliedDays: 10, postponedUntil: null });
  });

  test('never brings a deletion nearer', () => {
    const plan = newPlan(30);
    postponeRetention(plan, 90, at(0));
    postponeRetention(plan, 1, at(1));
    expect(plan.postponedUntil).toEqual(at(90));
  });

  test('of nothing is none', () => {
    expect(postponeRetention(newPlan(), 1, at(0))).toBe(false);
  });

  test('ends with the policy', () => {
    const plan = newPlan(30);
    postponeRetention(plan, 90, at(0));
    changeRetention(plan, 0, at(1));
    expect(plan.postponedUntil).toBeNull();
  });
});

test('the reminder comes once a month, and not in the month a policy began', () => {
  const plan = { ...newPlan(30), appliedSince: new Date('2026-12-09T03:00:00Z') };
  const due = (time: string) => isReminderDue(plan, new Date(time));
  expect(due('2026-12-31T03:00:00Z')).toBe(false);
  expect(due('2027-01-01T03:00:00Z')).toBe(true);
  plan.remindedAt = new Date('2027-01-01T03:00:00Z');
  expect(due('2027-01-31T03:00:00Z')).toBe(false);
  expect(due('2027-02-01T03:00:00Z')).toBe(true);
});

test('whatever is asked for in whatever order, mail goes seven days after the owners were told of as much, or more', () => {
  const act = fc.oneof(
    fc.record({ kind: fc.constant('set' as const), days: fc.constantFrom(0, 1, 5, 10, 30, 90) }),
    fc.record({ kind: fc.constant('postpone' as const), days: fc.integer({ min: 1, max: 20 }) }),
    fc.record({ kind: fc.constant('wait' as const), days: fc.integer({ min: 0, max: 9 }) }),
  );
  fc.assert(
    fc.property(fc.array(act, { maxLength: 25 }), (acts) => {
      const plan = newPlan();
      const told: { kind: string; days: number; time: number }[] = [];
      let time = START;
      let applied = 0;
      const review = () => {
        for (const { kind, days } of reviewRetention(plan, new Date(time))) told.push({ kind, days, time });
        if (isDeleting(plan) && isStricter(plan.appliedDays, applied)) {
          const asMuch = told.filter(({ days }) => !isStricter(plan.appliedDays, days));
          expect(asMuch.some((mail) => mail.kind === 'set' && mail.time <= time - 7 * DAY_MS)).toBe(true);
          expect(told.some((mail) => mail.kind === 'tomorrow' && mail.time <= time - 20 * HOUR_MS)).toBe(
            true,
          );
        }
        if (isDeleting(plan) || plan.appliedDays === 0) applied = plan.appliedDays;
        expect(isStricter(plan.appliedDays, plan.retentionDays)).toBe(false);
        expect(plan.steps.at(-1)?.days ?? plan.appliedDays).toBe(plan.retentionDays);
      };
      for (const { kind, days } of acts) {
        if (kind === 'set' && changeRetention(plan, days, new Date(time))) review();
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
