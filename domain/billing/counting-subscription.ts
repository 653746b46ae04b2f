import type { BillingSubscription } from './billing-subscription.entity.ts';
import { isHigherTier } from './prices.ts';

/** Statuses in which a subscription gives its tier. A failed payment does not take the tier away; suspension does. */
const GRANTING = new Set(['active', 'trialing', 'past_due', 'unpaid']);
const KNOWN = new Set([...GRANTING, 'incomplete', 'incomplete_expired', 'canceled', 'paused']);

type Subscription = Pick<BillingSubscription, 'status' | 'tier' | 'endedAt' | 'createdAt'>;

export const isKnownStatus = (status: string): boolean => KNOWN.has(status);

/** Its invoices are paid. */
export const isInGoodStanding = ({ status }: { status: string | null }): boolean =>
  status === 'active' || status === 'trialing';

/** It has not ended, and gives its tier. */
export const isGranting = ({ status, endedAt }: Pick<Subscription, 'status' | 'endedAt'>): boolean =>
  endedAt === null && GRANTING.has(status ?? '');

/**
 * The subscription that gives the organization its tier. There are several only if one was created at Stripe by hand.
 * Then a subscription that Stripe still collects takes precedence over one that it has given up, a higher tier over a
 * lower one, and a newer one over an older one.
 */
export function findCountingSubscription<T extends Subscription>(subscriptions: readonly T[]): T | undefined {
  return subscriptions.filter(isGranting).sort(compare)[0];
}

function compare(left: Subscription, right: Subscription): number {
  const collected = Number(left.status === 'unpaid') - Number(right.status === 'unpaid');
  if (collected !== 0) return collected;
  if (left.tier !== right.tier) {
    if (left.tier === null) return 1;
    if (right.tier === null) return -1;
    return isHigherTier(left.tier, right.tier) ? -1 : 1;
  }
  return right.createdAt.getTime() - left.createdAt.getTime();
}
