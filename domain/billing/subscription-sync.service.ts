import { sql } from 'kysely';
import type { Logger } from 'pino';
import type Stripe from 'stripe';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { PaymentGraceStep } from '../../workflows/billing/enforce-payment-grace.contract.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { Tier } from '../organizations/tier.ts';
import { followMeters } from './follow-meters.ts';
import { followTier, PAYS_TWICE } from './follow-tier.ts';
import type { PaymentGraceService } from './payment-grace.service.ts';
import type { Prices } from './prices.ts';
import { createMeterReader, type MeterView } from './read-meters.ts';
import { readSubscription, type SubscriptionView } from './read-subscription.ts';
import { BillingSubscriptionEntity } from './subscription.entity.ts';
import { isInGoodStanding, isKnownStatus } from './subscription-status.ts';

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

export type SubscriptionSyncService = ReturnType<typeof createSubscriptionSyncService>;

export function createSubscriptionSyncService(options: SubscriptionSyncOptions) {
  const { database, stripe, now = () => new Date() } = options;
  const readMeters = createMeterReader({ ...options, prices: options.prices.metered });

  /**
   * Reads the subscription from Stripe and applies the answer: tier, grace, suspension. Of several concurrent calls only the
   * answer to the latest one takes effect, since an older answer could overwrite a newer one.
   *
   * @returns the status, for the Temporal UI.
   * @throws AppError `unavailable` if Stripe does not answer, or if a later call has begun.
   */
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

    /**
     * Reads the subscription of a grace from Stripe, for its run.
     *
     * @returns the result of a closed grace, or the next step of the run.
     * @throws AppError as `sync`.
     */
    async reviewGrace(graceId: string): Promise<PaymentGraceStep | string> {
      const readGrace = () => findGrace(database.db, graceId);
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

const findGrace = (db: Db, id: string) =>
  db
    .selectFrom('payment_graces')
    .select([
      'subscription_id as subscriptionId',
      'status',
      'closed_at as closedAt',
      'next_step_at as nextStepAt',
      'suspend_at as suspendAt',
      'reminders_sent as remindersSent',
    ])
    .where('id', '=', id)
    .executeTakeFirst();

interface Claim {
  organizationId: string;
  readVersion: number;
  requestedAt: Date | null;
}

const claimReadBack = ({ db }: Database, subscriptionId: string): Promise<Claim | undefined> =>
  db
    .updateTable('billing_subscriptions')
    .set((eb) => ({ read_version: eb('read_version', '+', 1) }))
    .where('id', '=', subscriptionId)
    .returning(['org_id as organizationId', 'read_version as readVersion', 'requested_at as requestedAt'])
    .executeTakeFirst();

interface ReadBack extends Claim {
  subscriptionId: string;
  /** Null: Stripe has no such subscription. */
  view: SubscriptionView | null;
  /** Null: unknown; the meters stay as they are. */
  meters: readonly MeterView[] | null;
  now: Date;
}

async function apply(
  options: SubscriptionSyncOptions,
  transaction: Transaction,
  { organizationId, readVersion, requestedAt, subscriptionId, view, meters, now }: ReadBack,
): Promise<string> {
  const { db } = transaction;
  const appliedTier = await lockBilling(db, organizationId);
  const current = await db
    .selectFrom('billing_subscriptions')
    .select(['read_version as readVersion', 'problem'])
    .where('id', '=', subscriptionId)
    .executeTakeFirst();
  if (!current) return 'deleted';
  if (current.readVersion !== readVersion) throw superseded(subscriptionId);
  const tier = view?.priceId ? (options.prices.tierOf(view.priceId) ?? null) : null;
  const problem = findProblem(view, tier) ?? (await findClosure(db, organizationId, view));
  if (problem)
    options.logger.error({ organizationId, subscriptionId, problem }, 'subscription needs attention');
  await record(db, {
    subscriptionId,
    view,
    tier,
    // Whether this is a second paid subscription is decided below, from all subscriptions.
    problem: problem ?? (current.problem === PAYS_TWICE && !view?.endedAt ? PAYS_TWICE : null),
    scheduledTier: scheduledTierOf(options, view),
    now,
  });
  // Events that arrive from now on request another read.
  await db
    .updateTable('billing_subscriptions')
    .set({ requested_at: null })
    .where('id', '=', subscriptionId)
    .where('requested_at', 'is not distinct from', requestedAt)
    .execute();
  const open = await db
    .selectFrom('billing_subscriptions')
    .select(columnsOf(BillingSubscriptionEntity))
    .where('org_id', '=', organizationId)
    .where('ended_at', 'is', null)
    .execute();
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
  if (meters) await followMeters(db, { organizationId, subscriptionId, customerId, meters, endedAt, now });
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

/** Serializes changes to the organization's billing. Returns the tier that its subscriptions last gave it. */
async function lockBilling(db: Db, organizationId: string): Promise<Tier | null> {
  const customer = await db
    .selectFrom('billing_customers')
    .select('applied_tier as appliedTier')
    .where('org_id', '=', organizationId)
    .forNoKeyUpdate()
    .executeTakeFirst();
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

/**
 * Finds the problem `organization_closed`: a checkout that was open when the organization was closed has been paid since.
 */
async function findClosure(
  db: Db,
  organizationId: string,
  view: SubscriptionView | null,
): Promise<string | null> {
  if (!view || view.endedAt || view.status === 'incomplete') return null;
  const closed = await db
    .selectFrom('organizations')
    .select('id')
    .where('id', '=', organizationId)
    .where('deleted_at', 'is not', null)
    .executeTakeFirst();
  return closed ? 'organization_closed' : null;
}

function scheduledTierOf({ prices }: SubscriptionSyncOptions, view: SubscriptionView | null): Tier | null {
  return view?.scheduledPriceId ? (prices.tierOf(view.scheduledPriceId) ?? null) : null;
}

async function record(
  db: Db,
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
  const read = view && {
    status: view.status,
    price_id: view.priceId,
    tier,
    current_period_end: view.currentPeriodEnd,
    cancel_at: view.cancelAt,
    scheduled_tier: scheduledTier,
    open_invoice_id: view.openInvoice?.id ?? null,
    open_invoice_url: view.openInvoice?.url ?? null,
    next_attempt_at: view.openInvoice?.nextAttemptAt ?? null,
    ended_at: view.endedAt,
  };
  await db
    .updateTable('billing_subscriptions')
    // Known values stay if Stripe does not find the subscription.
    .set({ ...read, problem, synced_at: now })
    .where('id', '=', subscriptionId)
    .execute();
}

/** Emails the owners once for each invoice that they have to confirm with their bank. */
async function notifyOfRequiredAction(
  { notifications }: SubscriptionSyncOptions,
  transaction: Transaction,
  { organizationId, view }: { organizationId: string; view: SubscriptionView },
): Promise<void> {
  const { openInvoice } = view;
  if (!openInvoice?.url) return;
  const event = await transaction.db
    .selectFrom('stripe_events')
    .select('id')
    .where('org_id', '=', organizationId)
    .where('subscription_id', '=', view.id)
    .where('type', '=', 'invoice.payment_action_required')
    .where('received_at', '>', sql<Date>`now() - interval '7 days'`)
    .limit(1)
    .executeTakeFirst();
  if (!event) return;
  await notifications.notifyOwners(transaction, {
    organizationId,
    template: 'payment-action-required',
    params: { organizationId, invoiceUrl: openInvoice.url },
    dedupeKey: `payment-action-required/${openInvoice.id}`,
  });
}
