import { FINAL_NOTICE_MS, NOTICE_MS } from '../../workflows/retention/apply-retention.contract.ts';
import type { RetentionPolicy, RetentionStep } from './retention-policy.entity.ts';

/** The part of a policy that the rules read and change. */
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

/** An email due to the owners; `firstDeletionAt` is when messages are first deleted because of the change. */
export type RetentionWarning =
  | { kind: 'announcement'; days: number; firstDeletionAt: Date }
  | { kind: 'final'; days: number; firstDeletionAt: Date };

export const DAY_MS = 24 * 3_600_000;
/** How much the start of the daily run varies. */
const RUN_JITTER_MS = 10 * 60_000;
/** Minimum time between the final warning and the first deletion, even if the warning was late. */
const MIN_FINAL_NOTICE_MS = 20 * 3_600_000;
/** If the announcement is later than this, the first deletion is postponed too: owners always get seven days. */
const ANNOUNCEMENT_SLACK_MS = 3_600_000;

/** Whether `days` deletes more messages than `other`. */
export function isStricter(days: number, other: number): boolean {
  return days > 0 && (other === 0 || days < other);
}

/**
 * Sets how long messages are kept.
 *
 * A longer period takes effect immediately and cancels pending steps. A shorter one takes effect after seven days. Pending
 * steps that are longer than the new period stay; the first one that is shorter keeps its date and takes the new period.
 * So no message is deleted less than seven days after its deletion was announced.
 *
 * @returns false if the policy already has this value.
 */
export function changeRetention(plan: RetentionPlan, days: number, now: Date): boolean {
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
    plan.steps = [...looser, covering ? { ...covering, days } : createStep(plan.version, days, now)];
  }
  if (plan.retentionDays === 0) Object.assign(plan, { postponedUntil: null, resumeWarnedAt: null });
  return true;
}

function createStep(version: number, days: number, now: Date): RetentionStep {
  const takesEffectAt = new Date(now.getTime() + NOTICE_MS).toISOString();
  return { version, days, takesEffectAt, announcedAt: null, warnedAt: null };
}

function applyDays(plan: RetentionPlan, days: number, now: Date): void {
  plan.appliedDays = days;
  plan.appliedSince = days === 0 ? null : now;
}

/**
 * Postpones deletion by a number of days, counted from now, or from the first deletion if none has happened yet. Never
 * makes a deletion happen earlier; repeating a call adds only the time since the previous one.
 *
 * @returns false if there is nothing to postpone.
 */
export function postponeRetention(plan: RetentionPlan, days: number, now: Date): boolean {
  const [next] = plan.steps;
  if (plan.appliedDays === 0 && !next) return false;
  const from = plan.appliedDays === 0 && next ? latest(now, new Date(next.takesEffectAt)) : now;
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
 * Postpones deletion by a day for a suspended organization, which cannot act on warnings. Call it daily. When the
 * suspension ends, the owners are warned again before anything is deleted.
 */
export function suspendRetention(plan: RetentionPlan, now: Date): void {
  plan.steps = plan.steps.map((step) => ({ ...step, warnedAt: null }));
  if (plan.appliedDays === 0) return;
  const until = new Date(now.getTime() + DAY_MS);
  plan.postponedUntil = plan.postponedUntil ? latest(plan.postponedUntil, until) : until;
  plan.resumeWarnedAt = null;
}

/** The currently planned time at which a step starts to delete. */
export function firstDeletionAt(plan: Pick<RetentionPlan, 'postponedUntil'>, step: RetentionStep): Date {
  const at = new Date(step.takesEffectAt);
  return plan.postponedUntil ? latest(at, plan.postponedUntil) : at;
}

/** Whether the policy deletes messages now, as of the last review. */
export function isDeleting({
  appliedDays,
  postponedUntil,
}: Pick<RetentionPlan, 'appliedDays' | 'postponedUntil'>): boolean {
  return appliedDays > 0 && postponedUntil === null;
}

/**
 * Brings the plan up to date: returns the warnings that are due, and puts steps into effect whose notice has elapsed.
 * No step takes effect unannounced, even if the review runs late.
 */
export function reviewRetention(plan: RetentionPlan, now: Date): RetentionWarning[] {
  const warnings: RetentionWarning[] = [];
  plan.steps = plan.steps.map((step) => announceStep(plan, step, now, warnings));
  plan.steps = plan.steps.map((step) => warnAboutStep(plan, step, now, warnings));
  for (const step of [...plan.steps]) {
    if (!canStart(firstDeletionAt(plan, step), step.warnedAt, now)) break;
    applyDays(plan, step.days, now);
    plan.steps = plan.steps.filter((other) => other !== step);
    // The step's warning also announces that postponed deletion resumes.
    if (plan.postponedUntil && plan.postponedUntil <= now)
      plan.resumeWarnedAt ??= new Date(step.warnedAt ?? now);
  }
  resumeWhenDue(plan, now, warnings);
  return warnings;
}

function announceStep(
  plan: RetentionPlan,
  step: RetentionStep,
  now: Date,
  warnings: RetentionWarning[],
): RetentionStep {
  if (step.announcedAt !== null) return step;
  const earliest = new Date(now.getTime() + NOTICE_MS);
  const isLate = earliest.getTime() - Date.parse(step.takesEffectAt) > ANNOUNCEMENT_SLACK_MS;
  const updated = {
    ...step,
    announcedAt: now.toISOString(),
    takesEffectAt: isLate ? earliest.toISOString() : step.takesEffectAt,
  };
  warnings.push({
    kind: 'announcement',
    days: step.days,
    firstDeletionAt: firstDeletionAt(plan, updated),
  });
  return updated;
}

function warnAboutStep(
  plan: RetentionPlan,
  step: RetentionStep,
  now: Date,
  warnings: RetentionWarning[],
): RetentionStep {
  const at = firstDeletionAt(plan, step);
  if (step.warnedAt !== null || !isWarningDue(at, now)) return step;
  warnings.push({ kind: 'final', days: step.days, firstDeletionAt: earliestAfterWarning(at, now) });
  return { ...step, warnedAt: now.toISOString() };
}

/** Ends a postponement that is due. */
function resumeWhenDue(plan: RetentionPlan, now: Date, warnings: RetentionWarning[]): void {
  const { postponedUntil, appliedDays } = plan;
  if (!postponedUntil) return;
  if (appliedDays > 0 && !plan.resumeWarnedAt && isWarningDue(postponedUntil, now)) {
    plan.resumeWarnedAt = now;
    // A stricter step that starts at the same time has already produced the warning.
    if (!warnings.some(({ kind }) => kind === 'final'))
      warnings.push({
        kind: 'final',
        days: appliedDays,
        firstDeletionAt: earliestAfterWarning(postponedUntil, now),
      });
  }
  if (appliedDays === 0 ? postponedUntil <= now : canStart(postponedUntil, plan.resumeWarnedAt, now))
    Object.assign(plan, { postponedUntil: null, resumeWarnedAt: null });
}

/** Whether this run is the last one that can send the final warning in time, or is already too late. */
function isWarningDue(at: Date, now: Date): boolean {
  return at.getTime() <= now.getTime() + FINAL_NOTICE_MS + RUN_JITTER_MS;
}

function canStart(at: Date, warnedAt: Date | string | null, now: Date): boolean {
  if (warnedAt === null || at > now) return false;
  return now.getTime() - new Date(warnedAt).getTime() >= MIN_FINAL_NOTICE_MS;
}

function earliestAfterWarning(at: Date, now: Date): Date {
  return latest(at, new Date(now.getTime() + FINAL_NOTICE_MS));
}

function latest(a: Date, b: Date): Date {
  return a > b ? a : b;
}

/** Whether this month's reminder is due. The month in which a period takes effect has its own warnings. */
export function isReminderDue({ appliedSince, remindedAt }: RetentionPlan, now: Date): boolean {
  const month = toYearMonth(now);
  return (
    appliedSince !== null &&
    toYearMonth(appliedSince) !== month &&
    (!remindedAt || toYearMonth(remindedAt) !== month)
  );
}

/** For example `2026-12` (UTC). */
export function toYearMonth(time: Date): string {
  return time.toISOString().slice(0, 7);
}
