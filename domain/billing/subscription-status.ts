import { anyOf } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { isHigherTier } from './prices.ts';
import type { BillingSubscription } from './subscription.entity.ts';

/** Statuses in which a subscription gives its tier. A failed payment does not take the tier away; suspension does. */
const GRANTING = new Set(['active', 'trialing', 'past_due', 'unpaid']);
const KNOWN = new Set([...GRANTING, 'incomplete', 'incomplete_expired', 'canceled', 'paused']);

type Subscription = Pick<BillingSubscription, 'status' | 'tier' | 'endedAt' | 'createdAt'>;

export const isKnownStatus = (status: string): boolean => KNOWN.has(status);

/** Whether the invoices of the subscription are paid. */
export const isInGoodStanding = ({ status }: { status: string | null }): boolean =>
  status === 'active' || status === 'trialing';

/** Whether the subscription has not ended and gives its tier. */
export const isGranting = ({ status, endedAt }: Pick<Subscription, 'status' | 'endedAt'>): boolean =>
  endedAt === null && GRANTING.has(status ?? '');

/**
 * Finds the subscription that gives the organization its tier. There are several only if one was created at Stripe by hand.
 * Then subscriptions that Stripe still collects take precedence over those that it has given up, then higher tiers over
 * lower ones, then newer subscriptions over older ones.
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

const GOING_ON = ['active', 'trialing', 'past_due', 'unpaid', 'paused'] as const;

/**
 * Stripe would continue to charge for a subscription whose organization no longer exists and cannot cancel it. A
 * subscription with a scheduled cancellation ends by itself. For the people role.
 *
 * @throws AppError `conflict` if one of the organizations pays for a subscription.
 */
export async function requireNoSubscription(db: Db, organizationIds: readonly string[]): Promise<void> {
  if (organizationIds.length === 0) return;
  const open = await db
    .selectFrom('billing_subscriptions')
    .select(['id', 'org_id as organizationId', 'status'])
    .where('org_id', '=', anyOf(organizationIds))
    .where('ended_at', 'is', null)
    .where('cancel_at', 'is', null)
    .where('status', '=', anyOf(GOING_ON))
    .orderBy('id')
    .limit(1)
    .$narrowType<{ status: string }>()
    .executeTakeFirst();
  if (!open) return;
  throw new AppError('conflict', {
    detail: `The organization ${open.organizationId} has the subscription ${open.id}, which is ${open.status} and would continue.`,
    fix: 'Cancel it first: POST /billing/subscription/cancel, or on the billing page. It takes effect with Stripe’s event, within seconds.',
    extensions: { org_id: open.organizationId, subscription_status: open.status },
  });
}
