import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { AppError } from '../../platform/errors.ts';

/**
 * A subscription goes on at Stripe without its organization, which could no longer cancel it. One that was canceled for a
 * later time ends by itself. For the people role.
 *
 * @throws AppError `conflict` if one of the organizations pays for a subscription.
 */
export async function requireNoSubscription(
  em: EntityManager,
  organizationIds: readonly string[],
): Promise<void> {
  if (organizationIds.length === 0) return;
  const [open] = await em.execute<{ id: string; organizationId: string; status: string }[]>(sql`
    select id, org_id as "organizationId", status from billing_subscriptions
    where org_id in (${[...organizationIds]}) and ended_at is null and cancel_at is null
      and status in ('active', 'trialing', 'past_due', 'unpaid', 'paused') order by id limit 1`);
  if (!open) return;
  throw new AppError('conflict', {
    detail: `The organization ${open.organizationId} has the subscription ${open.id}, which is ${open.status} and would go on.`,
    fix: 'Cancel it first: POST /billing/subscription/cancel, or on the billing page. It takes effect with Stripe’s event, within seconds.',
    extensions: { org_id: open.organizationId, subscription_status: open.status },
  });
}
