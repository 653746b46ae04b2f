import { FINAL_NOTICE_MS, NOTICE_MS } from '../../workflows/retention/apply-retention.contract.ts';
import type { RetentionPolicy, RetentionStep } from './retention-policy.entity.ts';

/** The part of a policy the rules know. */
export type RetentionPlan = Pick<
  RetentionPolicy,
  | 'retentionDays'
  | 'appliedDays'
  | 'appliedSince'
  | 'steps'
  | 'postponedUntil'
  | 'resumeWarnedAt'
  | 'remindedAt'
  | 'version'
  | 'changedAt'
>;

/** What the owners are to be told; a date is when mail is first deleted because of it. */
export type Warning =
  | { kind: 'set'; days: number; firstDeletionAt: Date }
  | { kind: 'tomorrow'; days: number; firstDeletionAt: Date };

export const DAY_MS = 24 * 3_600_000;
/** Runs come once a day, a little earlier or later. */
const RUN_JITTER_MS = 10 * 60_000;
/** The least time between the last warning and the first deletion, where the warning itself came late. */
const LEAST_FINAL_NOTICE_MS = 20 * 3_600_000;
/** An announcement later than this moves what it announces: the owners have their seven days. */
const ANNOUNCEMENT_SLACK_MS = 3_600_000;

/** Whether `days` deletes more than `other` does. */
export function isStricter(days: number, other: number): boolean {
  return days > 0 && (other === 0 || days < other);
}

/**
 * Sets how long mail is kept.
 *
 * What keeps longer holds at once, and undoes what waited. What deletes more waits seven days; what was announced
 * before keeps its time as far as the new setting asks for as much. So mail only ever goes seven days after its going
 * was announced.
 *
 * @returns false where it was set so already.
 */
export function planRetention(plan: RetentionPlan, days: number, now: Date): boolean {
  if (days === plan.retentionDays) return false;
  plan.version += 1;
  plan.retentionDays = days;
  plan.changedAt = now;
  if (!isStricter(days, plan.appliedDays)) {
    if (days !== plan.appliedDays) applyDays(plan, days, now);
    plan.steps = [];
  } else {
    const looser = plan.steps.filter((step) => isStricter(days, step.days));
    const covering = plan.steps[looser.length];
    plan.steps = [...looser, covering ? { ...covering, days } : newStep(plan.version, days, now)];
  }
  if (plan.retentionDays === 0) Object.assign(plan, { postponedUntil: null, resumeWarnedAt: null });
  return true;
}

function newStep(version: number, days: number, now: Date): RetentionStep {
  const takesEffectAt = new Date(now.getTime() + NOTICE_MS).toISOString();
  return { version, days, takesEffectAt, announcedAt: null, warnedAt: null };
}

function applyDays(plan: RetentionPlan, days: number, now: Date): void {
  plan.appliedDays = days;
  plan.appliedSince = days === 0 ? null : now;
}

/**
 * Deletes nothing for so many days more: counted from now, or from the first deletion where none has begun. It never
 * brings a deletion nearer; the same again changes next to nothing.
 *
 * @returns false where there is nothing to postpone.
 */
export function postponeRetention(plan: RetentionPlan, days: number, now: Date): boolean {
  const [next] = plan.steps;
  if (plan.appliedDays === 0 && !next) return false;
  const from = plan.appliedDays === 0 && next ? later(now, new Date(next.takesEffectAt)) : now;
  const until = new Date(from.getTime() + days * DAY_MS);
  if (plan.postponedUntil && plan.postponedUntil >= until) return true;
  plan.postponedUntil = until;
  plan.resumeWarnedAt = null;
  plan.changedAt = now;
  plan.steps = plan.steps.map((step) =>
    new Date(step.takesEffectAt) < until ? { ...step, warnedAt: null } : step,
  );
  return true;
}

/**
 * Deletes nothing for a day more, for an organization that can neither postpone nor change anything. To be repeated
 * daily; once it ends, the owners are warned anew, since what they were told before they could not act on.
 */
export function holdRetention(plan: RetentionPlan, now: Date): void {
  plan.steps = plan.steps.map((step) => ({ ...step, warnedAt: null }));
  if (plan.appliedDays === 0) return;
  const until = new Date(now.getTime() + DAY_MS);
  plan.postponedUntil = plan.postponedUntil ? later(plan.postponedUntil, until) : until;
  plan.resumeWarnedAt = null;
}

/** When a step begins to delete, as far as is known. */
export function firstDeletionAt(plan: Pick<RetentionPlan, 'postponedUntil'>, step: RetentionStep): Date {
  const at = new Date(step.takesEffectAt);
  return plan.postponedUntil ? later(at, plan.postponedUntil) : at;
}

/** Whether mail may be deleted now, as far as the last review went. */
export function deletesNow({ appliedDays, postponedUntil }: RetentionPlan): boolean {
  return appliedDays > 0 && postponedUntil === null;
}

/**
 * Brings the plan up to date: says what the owners are to be told, and lets begin what they have been told long enough.
 * Nothing begins unannounced, however late this is called.
 */
export function reviewRetention(plan: RetentionPlan, now: Date): Warning[] {
  const warnings: Warning[] = [];
  plan.steps = plan.steps.map((step) => announced(plan, step, now, warnings));
  plan.steps = plan.steps.map((step) => warnedOfStep(plan, step, now, warnings));
  for (const step of [...plan.steps]) {
    if (!isReady(firstDeletionAt(plan, step), step.warnedAt, now)) break;
    applyDays(plan, step.days, now);
    plan.steps = plan.steps.filter((other) => other !== step);
    // Its own warning stands for that of what was postponed together with it.
    if (plan.postponedUntil && plan.postponedUntil <= now)
      plan.resumeWarnedAt ??= new Date(step.warnedAt ?? now);
  }
  resume(plan, now, warnings);
  return warnings;
}

function announced(plan: RetentionPlan, step: RetentionStep, now: Date, warnings: Warning[]): RetentionStep {
  if (step.announcedAt !== null) return step;
  const inTime = new Date(now.getTime() + NOTICE_MS);
  const isLate = inTime.getTime() - Date.parse(step.takesEffectAt) > ANNOUNCEMENT_SLACK_MS;
  const told = {
    ...step,
    announcedAt: now.toISOString(),
    takesEffectAt: isLate ? inTime.toISOString() : step.takesEffectAt,
  };
  warnings.push({
    kind: 'set',
    days: step.days,
    firstDeletionAt: firstDeletionAt(plan, told),
  });
  return told;
}

function warnedOfStep(
  plan: RetentionPlan,
  step: RetentionStep,
  now: Date,
  warnings: Warning[],
): RetentionStep {
  const at = firstDeletionAt(plan, step);
  if (step.warnedAt !== null || !isNear(at, now)) return step;
  warnings.push({ kind: 'tomorrow', days: step.days, firstDeletionAt: dayAfterWarning(at, now) });
  return { ...step, warnedAt: now.toISOString() };
}

/** Ends a postponement whose time has come. */
function resume(plan: RetentionPlan, now: Date, warnings: Warning[]): void {
  const { postponedUntil, appliedDays } = plan;
  if (!postponedUntil) return;
  if (appliedDays > 0 && !plan.resumeWarnedAt && isNear(postponedUntil, now)) {
    plan.resumeWarnedAt = now;
    // A stricter setting that begins at the same time has just said so.
    if (!warnings.some(({ kind }) => kind === 'tomorrow'))
      warnings.push({
        kind: 'tomorrow',
        days: appliedDays,
        firstDeletionAt: dayAfterWarning(postponedUntil, now),
      });
  }
  if (appliedDays === 0 ? postponedUntil <= now : isReady(postponedUntil, plan.resumeWarnedAt, now))
    Object.assign(plan, { postponedUntil: null, resumeWarnedAt: null });
}

/** The next run is the last one before it, or comes too late already. */
function isNear(at: Date, now: Date): boolean {
  return at.getTime() <= now.getTime() + FINAL_NOTICE_MS + RUN_JITTER_MS;
}

function isReady(at: Date, warnedAt: Date | string | null, now: Date): boolean {
  if (warnedAt === null || at > now) return false;
  return now.getTime() - new Date(warnedAt).getTime() >= LEAST_FINAL_NOTICE_MS;
}

function dayAfterWarning(at: Date, now: Date): Date {
  return later(at, new Date(now.getTime() + FINAL_NOTICE_MS));
}

function later(a: Date, b: Date): Date {
  return a > b ? a : b;
}

/** Whether this month's reminder is still to be written. The month in which a period began had warnings of its own. */
export function isReminderDue({ appliedSince, remindedAt }: RetentionPlan, now: Date): boolean {
  const month = monthOf(now);
  return (
    appliedSince !== null && monthOf(appliedSince) !== month && (!remindedAt || monthOf(remindedAt) !== month)
  );
}

/** `2026-12`, UTC. */
export function monthOf(time: Date): string {
  return time.toISOString().slice(0, 7);
}
