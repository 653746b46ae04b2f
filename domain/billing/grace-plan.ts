import type { SubscriptionView } from './read-subscription.ts';
import { isInGoodStanding } from './subscription-status.ts';

const DAY_MS = 86_400_000;
/** Days before the suspension on which owners are reminded. */
const REMINDER_DAYS = [7, 3, 1] as const;
/** How often the invoice is read while nothing else is due. Events cause earlier reads. */
const RECHECK_MS = DAY_MS;
/** The grace is over, but Stripe has no open invoice. Stripe is about to create one or to end the subscription. */
const UNCLEAR_RECHECK_MS = 3_600_000;

export interface GraceTimes {
  status: 'waiting' | 'suspended';
  startedAt: Date;
  suspendAt: Date;
  remindersSent: number;
}

/** The next step of a grace, given the present state at Stripe. */
export type GraceStep =
  | { kind: 'recovered' }
  | { kind: 'ended' }
  | { kind: 'suspend'; nextStepAt: Date }
  | { kind: 'remind'; remindersSent: number; nextStepAt: Date }
  | { kind: 'wait'; nextStepAt: Date };

/**
 * Whether a payment has failed and Stripe is still trying to collect it. `incomplete` does not count, because the first
 * payment never succeeded.
 */
export function isPaymentOverdue({
  status,
  openInvoice,
}: Pick<SubscriptionView, 'status' | 'openInvoice'>): boolean {
  return (status === 'past_due' || status === 'unpaid') && openInvoice?.wasAttempted === true;
}

export interface Standing {
  view: Pick<SubscriptionView, 'status' | 'openInvoice' | 'endedAt'>;
  /** Whether another subscription of the organization is in good standing. If so, the organization is not suspended. */
  isPaidOtherwise: boolean;
}

export function planGraceStep({ view, isPaidOtherwise }: Standing, grace: GraceTimes, now: Date): GraceStep {
  if (isInGoodStanding(view)) return { kind: 'recovered' };
  if (view.endedAt || isPaidOtherwise) return { kind: 'ended' };
  const after = (delayMs: number) => new Date(now.getTime() + delayMs);
  if (grace.status === 'suspended') return { kind: 'wait', nextStepAt: after(RECHECK_MS) };
  if (now.getTime() >= grace.suspendAt.getTime())
    return isPaymentOverdue(view)
      ? { kind: 'suspend', nextStepAt: after(RECHECK_MS) }
      : { kind: 'wait', nextStepAt: after(UNCLEAR_RECHECK_MS) };
  const reminders = reminderTimes(grace);
  const passed = reminders.filter((time) => time <= now.getTime()).length;
  const nextStepAt = new Date(reminders[passed] ?? grace.suspendAt.getTime());
  return passed > grace.remindersSent
    ? { kind: 'remind', remindersSent: passed, nextStepAt }
    : { kind: 'wait', nextStepAt };
}

/** Counts the reminders whose time has passed, so that moving the end of the grace sends none of them. */
export const countPassedReminders = (grace: GraceTimes, now: Date): number =>
  reminderTimes(grace).filter((time) => time <= now.getTime()).length;

/** No reminder is sent within a day of the first email. */
function reminderTimes({ startedAt, suspendAt }: GraceTimes): number[] {
  return REMINDER_DAYS.map((days) => suspendAt.getTime() - days * DAY_MS).filter(
    (time) => time >= startedAt.getTime() + DAY_MS,
  );
}
