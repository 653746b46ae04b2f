import { anyOf } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';

const GOING_ON = ['active', 'trialing', 'past_due', 'unpaid', 'paused'] as const;

/**
 * Stripe would continue to charge for a subscription whose organization is gone and cannot cancel it. A subscription that
 * is canceled for a later time ends by itself. For the people role.
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
    detail: `The organization ${open.organizationId} has the subscription ${open.id}, which is ${open.status} and would go on.`,
    fix: 'Cancel it first: POST /billing/subscription/cancel, or on the billing page. It takes effect with Stripe’s event, within seconds.',
    extensions: { org_id: open.organizationId, subscription_status: open.status },
  });
}
