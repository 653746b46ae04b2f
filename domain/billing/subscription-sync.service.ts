import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import type Stripe from 'stripe';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findRow, findRows } from '../../platform/database/find-rows.ts';
import { AppError } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { PaymentGraceStep } from '../../workflows/billing/enforce-payment-grace.contract.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { Tier } from '../organizations/tier.ts';
import { BillingCustomerEntity } from './billing-customer.entity.ts';
import { BillingSubscriptionEntity } from './billing-subscription.entity.ts';
import { isInGoodStanding, isKnownStatus } from './counting-subscription.ts';
import { followMeters } from './follow-meters.ts';
import { followTier, PAYS_TWICE } from './follow-tier.ts';
import { PaymentGraceEntity } from './payment-grace.entity.ts';
import type { PaymentGraceService } from './payment-grace.service.ts';
import type { Prices } from './prices.ts';
import { createMeterReader, type MeterView } from './read-meters.ts';
import { readSubscription, type SubscriptionView } from './read-subscription.ts';

export interface SubscriptionSyncService {
  /**
   * Reads the subscription back from Stripe and applies the answer: tier, grace, suspension. Of several calls at the same
   * time only the answer to the last one takes effect, since an older answer could overwrite a newer one.
   *
   * @returns its status, for the Temporal UI.
   * @throws AppError `unavailable` if Stripe does not answer, or if a later call has begun.
   */
  sync(subscriptionId: string): Promise<string>;
  /**
   * {@link sync}, for the run of a grace.
   *
   * @returns the result of a closed grace, or what the run waits for.
   */
  reviewGrace(graceId: string): Promise<PaymentGraceStep | string>;
}

export interface SubscriptionSyncOptions {
  database: Database;
  stripe: Stripe;
  outbox: Outbox;
  notifications: Pick<NotificationService, 'notifyOwners'>;
  graces: PaymentGraceService;
  prices: Prices;
  /** Tier of an organization without a subscription. */
  defaultTier: Tier;
  logger: Pick<Logger, 'warn' | 'error'>;
  now?: () => Date;
}

export function createSubscriptionSyncService(options: SubscriptionSyncOptions): SubscriptionSyncService {
  const { database, stripe, now = () => new Date() } = options;
  const readMeters = createMeterReader({ ...options, prices: options.prices.metered });

  async function sync(subscriptionId: string): Promise<string> {
    const claim = await claimReadBack(database, subscriptionId);
    if (!claim) return 'unknown';
    const view = await readSubscription(stripe, subscriptionId);
    const meters = view ? await readMeters(view) : null;
    return database.systemTransaction((transaction) =>
      apply(options, transaction, { ...claim, subscriptionId, view, meters, now: now() }),
    );
  }

  return {
    sync,

    async reviewGrace(graceId) {
      const readGrace = () =>
        database.autocommit((em) => findRow(em, PaymentGraceEntity, { where: { id: graceId } }));
      const before = await readGrace();
      if (!before) return 'deleted';
      if (!before.closedAt) await sync(before.subscriptionId);
      const grace = await readGrace();
      if (!grace) return 'deleted';
      if (grace.closedAt) return grace.status;
      const stage = grace.status === 'suspended' ? 'suspended' : 'waiting';
      return {
        stage,
        waitUntil: (grace.nextStepAt ?? grace.suspendAt).toISOString(),
        detail:
          stage === 'suspended'
            ? 'Suspended. Ends with the payment, or with the subscription.'
            : `Suspends the organization on ${formatUtc(grace.suspendAt)}, unless the invoice is paid. Reminders sent: ${grace.remindersSent}.`,
      };
    },
  };
}

interface Claim {
  organizationId: string;
  readVersion: number;
  requestedAt: string | null;
}

async function claimReadBack(database: Database, subscriptionId: string): Promise<Claim | undefined> {
  const [claim] = await database.query<Claim>(sql`
    update billing_subscriptions set read_version = read_version + 1 where id = ${subscriptionId}
    returning org_id as "organizationId", read_version as "readVersion", requested_at::text as "requestedAt"`);
  return claim;
}

interface ReadBack extends Claim {
  subscriptionId: string;
  /** Null: Stripe has no such subscription. */
  view: SubscriptionView | null;
  /** Null: unknown, so that they stay as they are. */
  meters: readonly MeterView[] | null;
  now: Date;
}

async function apply(
  options: SubscriptionSyncOptions,
  transaction: Transaction,
  { organizationId, readVersion, requestedAt, subscriptionId, view, meters, now }: ReadBack,
): Promise<string> {
  const { em } = transaction;
  const appliedTier = await lockBilling(em, organizationId);
  const current = await findRow(em, BillingSubscriptionEntity, { where: { id: subscriptionId } });
  if (!current) return 'deleted';
  if (current.readVersion !== readVersion) throw superseded(subscriptionId);
  const tier = view?.priceId ? (options.prices.tierOf(view.priceId) ?? null) : null;
  const problem = findProblem(view, tier) ?? (await findClosure(em, organizationId, view));
  if (problem)
    options.logger.error({ organizationId, subscriptionId, problem }, 'subscription needs attention');
  await record(em, {
    subscriptionId,
    view,
    tier,
    // Decided below, with the other subscriptions.
    problem: problem ?? (current.problem === PAYS_TWICE && !view?.endedAt ? PAYS_TWICE : null),
    scheduledTier: scheduledTierOf(options, view),
    now,
  });
  // Events that arrive from here on ask again.
  await em.execute(sql`
    update billing_subscriptions set requested_at = null
    where id = ${subscriptionId} and requested_at is not distinct from ${requestedAt}::timestamptz`);
  const open = await findRows(em, BillingSubscriptionEntity, { where: { organizationId, endedAt: null } });
  await followTier(options, transaction, {
    organizationId,
    appliedTier,
    subscriptionId,
    hasEnded: Boolean(view?.endedAt),
    open,
    now,
  });
  if (!view) return 'missing at Stripe';
  const { customerId, endedAt } = view;
  if (meters) await followMeters(em, { organizationId, subscriptionId, customerId, meters, endedAt, now });
  const isPaidOtherwise = open.some((other) => other.id !== subscriptionId && isInGoodStanding(other));
  await options.graces.follow(transaction, {
    organizationId,
    view,
    isPaidOtherwise,
    now: view.clock ?? now,
  });
  await notifyOfRequiredAction(options, transaction, { organizationId, view });
  return view.status;
}

/** Serializes what is done to the organization's billing. Returns the tier that its subscriptions gave it last. */
async function lockBilling(em: EntityManager, organizationId: string): Promise<Tier | null> {
  await em.execute(sql`select from billing_customers where org_id = ${organizationId} for no key update`);
  const customer = await findRow(em, BillingCustomerEntity, { where: { organizationId } });
  return customer?.appliedTier ?? null;
}

function superseded(subscriptionId: string): AppError {
  return new AppError('unavailable', {
    detail: `A later read-back of ${subscriptionId} has begun.`,
    fix: 'Try again.',
  });
}

function findProblem(view: SubscriptionView | null, tier: Tier | null): string | null {
  if (!view) return 'missing_at_stripe';
  if (!isKnownStatus(view.status)) return 'unknown_status';
  if (!view.endedAt && tier === null) return 'unknown_price';
  return null;
}

/** A checkout that was open when the organization was closed has been paid: the money is for nothing. */
async function findClosure(
  em: EntityManager,
  organizationId: string,
  view: SubscriptionView | null,
): Promise<string | null> {
  if (!view || view.endedAt || view.status === 'incomplete') return null;
  const closed = await em.execute<object[]>(
    sql`select from organizations where id = ${organizationId} and deleted_at is not null`,
  );
  return closed.length > 0 ? 'organization_closed' : null;
}

function scheduledTierOf({ prices }: SubscriptionSyncOptions, view: SubscriptionView | null): Tier | null {
  return view?.scheduledPriceId ? (prices.tierOf(view.scheduledPriceId) ?? null) : null;
}

async function record(
  em: EntityManager,
  {
    subscriptionId,
    view,
    tier,
    problem,
    scheduledTier,
    now,
  }: {
    subscriptionId: string;
    view: SubscriptionView | null;
    tier: Tier | null;
    problem: string | null;
    scheduledTier: Tier | null;
    now: Date;
  },
): Promise<void> {
  // What is known stays, so that a subscription that Stripe does not find changes nothing.
  if (!view) {
    await em.execute(
      sql`update billing_subscriptions set problem = ${problem}, synced_at = ${now} where id = ${subscriptionId}`,
    );
    return;
  }
  await em.execute(sql`
    update billing_subscriptions set status = ${view.status}, price_id = ${view.priceId}, tier = ${tier},
      current_period_end = ${view.currentPeriodEnd}, cancel_at = ${view.cancelAt}, scheduled_tier = ${scheduledTier},
      open_invoice_id = ${view.openInvoice?.id ?? null}, open_invoice_url = ${view.openInvoice?.url ?? null},
      next_attempt_at = ${view.openInvoice?.nextAttemptAt ?? null}, ended_at = ${view.endedAt}, problem = ${problem},
      synced_at = ${now}
    where id = ${subscriptionId}`);
}

/** Once for each invoice that its owner has to confirm at the bank. */
async function notifyOfRequiredAction(
  { notifications }: SubscriptionSyncOptions,
  transaction: Transaction,
  { organizationId, view }: { organizationId: string; view: SubscriptionView },
): Promise<void> {
  const { openInvoice } = view;
  if (!openInvoice?.url) return;
  const [event] = await transaction.em.execute<unknown[]>(sql`
    select 1 from stripe_events where org_id = ${organizationId} and subscription_id = ${view.id}
      and type = 'invoice.payment_action_required' and received_at > now() - interval '7 days' limit 1`);
  if (!event) return;
  await notifications.notifyOwners(transaction, {
    organizationId,
    template: 'payment-action-required',
    params: { organizationId, invoiceUrl: openInvoice.url },
    dedupeKey: `payment-action-required/${openInvoice.id}`,
  });
}
