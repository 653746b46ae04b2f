import { sql } from 'kysely';
import type { Logger } from 'pino';
import { anyOf } from '../../platform/database/any-of.ts';
import type { RowOf } from '../../platform/database/columns-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { applyTier } from '../administration/apply-tier.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { Tier } from '../organizations/tier.ts';
import { recordBillingAudit } from './record-billing-audit.ts';
import type { BillingSubscriptionEntity } from './subscription.entity.ts';
import { findCountingSubscription, isGranting } from './subscription-status.ts';

export interface FollowTierOptions {
  outbox: Outbox;
  notifications: Pick<NotificationService, 'notifyOwners'>;
  /** Tier of an organization without a subscription. */
  defaultTier: Tier;
  logger: Pick<Logger, 'error'>;
}

/** Problem of a second paid subscription. Unlike other problems it does not keep the tier from changing. */
export const PAYS_TWICE = 'pays_twice';

/** Gives the organization the tier of its subscriptions, if it differs from the tier that they gave last. */
export async function followTier(
  { outbox, notifications, defaultTier, logger }: FollowTierOptions,
  transaction: Transaction,
  {
    organizationId,
    appliedTier,
    subscriptionId,
    hasEnded,
    open,
    now,
  }: {
    organizationId: string;
    /** The tier that the subscriptions last gave it. */
    appliedTier: Tier | null;
    /** The subscription that was read. */
    subscriptionId: string;
    hasEnded: boolean;
    /** All subscriptions that have not ended, after the read. */
    open: readonly RowOf<typeof BillingSubscriptionEntity>[];
    now: Date;
  },
): Promise<void> {
  const { db } = transaction;
  const counting = findCountingSubscription(open);
  const surplus = open.filter((other) => other.id !== counting?.id && isGranting(other));
  const found = await markSurplus(db, organizationId, surplus);
  if (found.length > 0)
    logger.error({ organizationId, counts: counting?.id, surplus: found }, 'organization pays twice');
  // Keeping a tier too long does less harm than taking it away by mistake.
  if (open.some(({ problem }) => problem !== null && problem !== PAYS_TWICE)) return;
  const granted = counting?.tier ?? null;
  if (granted === appliedTier) return;
  await db
    .updateTable('billing_customers')
    .set({ applied_tier: granted, updated_at: sql`now()` })
    .where('org_id', '=', organizationId)
    .execute();
  const tier = granted ?? defaultTier;
  await applyTier(transaction, outbox, {
    organizationId,
    tier,
    actor: 'system',
    at: now,
    record: (event) =>
      recordBillingAudit(transaction, {
        ...event,
        organizationId,
        subscriptionId,
        reason:
          granted === null ? 'The subscription has ended.' : `The subscription is for the tier ${granted}.`,
      }),
  });
  if (granted === null && hasEnded)
    await notifications.notifyOwners(transaction, {
      organizationId,
      template: 'subscription-ended',
      params: { organizationId, tier },
      dedupeKey: `subscription-ended/${subscriptionId}`,
    });
}

/**
 * Marks the subscriptions that are paid in addition to the one that counts, for operators. @returns those that were not
 * marked before.
 */
async function markSurplus(
  db: Db,
  organizationId: string,
  surplus: readonly RowOf<typeof BillingSubscriptionEntity>[],
): Promise<string[]> {
  const ids = surplus.map(({ id }) => id);
  await db
    .updateTable('billing_subscriptions')
    .set({ problem: null })
    .where('org_id', '=', organizationId)
    .where('problem', '=', PAYS_TWICE)
    .where('id', '<>', sql<string>`all(${ids})`)
    .execute();
  const marked = await db
    .updateTable('billing_subscriptions')
    .set({ problem: PAYS_TWICE })
    .where('org_id', '=', organizationId)
    .where('problem', 'is', null)
    .where('id', '=', anyOf(ids))
    .returning('id')
    .execute();
  return marked.map(({ id }) => id);
}
