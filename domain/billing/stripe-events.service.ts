import { sql } from 'kysely';
import type { Logger } from 'pino';
import Stripe from 'stripe';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { buildSyncCommand } from './billing-starts.ts';
import { idOf } from './read-subscription.ts';
import { isPlausibleSignature } from './stripe-signature.ts';

export type StripeEventResult = 'accepted' | 'duplicate' | 'ignored';

export interface StripeEventOptions {
  /** Connected as a worker: an event may concern any organization. */
  database: Database;
  stripe: Pick<Stripe, 'webhooks'>;
  outbox: Pick<Outbox, 'enqueue'>;
  /** All valid secrets, newest first. */
  webhookSecrets: readonly string[];
  /** Whether the service works with live money. */
  isLive: boolean;
  logger: Pick<Logger, 'warn'>;
}

/** The subject of an event. An id is null if the event does not name it. */
interface Subject {
  customerId: string | null;
  subscriptionId: string | null;
  /** A checkout session that has ended. */
  sessionId: string | null;
}

export type StripeEventService = ReturnType<typeof createStripeEventService>;

export function createStripeEventService(options: StripeEventOptions) {
  const { database, outbox, isLive, logger } = options;
  return {
    /**
     * Checks what can be checked without the body, so that a refused body is not read.
     *
     * @throws AppError `unauthenticated`.
     */
    requirePlausible(signature: string | undefined): void {
      if (!isPlausibleSignature(signature)) throw notSigned();
    },

    /**
     * Accepts an event, which takes effect once, by its id. It is committed before Stripe gets an answer. A run then reads
     * the subscription from Stripe.
     *
     * @param body the bytes as received, since the signature covers them.
     * @throws AppError `unauthenticated` for a missing, wrong or old signature.
     */
    async take(body: Buffer, signature: string | undefined): Promise<StripeEventResult> {
      const event = verify(options, body, signature);
      const about = { eventId: event.id, type: event.type };
      if (event.livemode !== isLive) return ignore('it belongs to the other mode');
      if (event.account) return ignore('it belongs to another account');
      const subject = findSubject(event);
      if (!subject) return ignore('it concerns no subscription');
      if (Object.values(subject).some((id) => id !== null && !isText(id))) throw malformed();
      return database.systemTransaction(async (transaction) => {
        const { db } = transaction;
        const organizationId = await findOrganization(db, subject);
        if (!organizationId) return ignore('its customer is unknown');
        if (!(await insertEvent(db, organizationId, event, subject))) return 'duplicate';
        if (subject.sessionId) await forgetSession(db, organizationId, subject.sessionId);
        const ids = subject.subscriptionId
          ? await requestNamed(db, organizationId, subject.subscriptionId)
          : await requestOpen(db, organizationId);
        for (const id of ids)
          outbox.enqueue(transaction, organizationId, buildSyncCommand({ id, organizationId }));
        return 'accepted';
      });

      function ignore(reason: string): 'ignored' {
        logger.warn({ ...about, reason }, 'Stripe event ignored');
        return 'ignored';
      }
    },
  };
}

function verify(
  { stripe, webhookSecrets }: StripeEventOptions,
  body: Buffer,
  signature: string | undefined,
): Stripe.Event {
  if (!isPlausibleSignature(signature)) throw notSigned();
  for (const secret of webhookSecrets) {
    try {
      return requireEvent(stripe.webhooks.constructEvent(body, signature, secret));
    } catch (error) {
      if (!(error instanceof Stripe.errors.StripeSignatureVerificationError)) throw malformed();
    }
  }
  throw notSigned();
}

function notSigned(): AppError {
  return new AppError('unauthenticated', {
    detail: 'The signature of the event is missing, wrong or too old.',
    fix: 'Only Stripe calls this. Check STRIPE_WEBHOOK_SECRET, and the clock of the server.',
  });
}

const MAX_TEXT_CHARACTERS = 255;

const isText = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.length <= MAX_TEXT_CHARACTERS &&
  value.isWellFormed() &&
  !value.includes('\0');

/** The signature proves who sent the body, not that it has the form of an event. */
function requireEvent(value: unknown): Stripe.Event {
  const { id, type, created, data } = (value ?? {}) as Partial<Stripe.Event>;
  const hasObject = typeof data?.object === 'object' && data.object !== null;
  if (
    isText(id) &&
    isText(type) &&
    Number.isInteger(created) &&
    Math.abs(created ?? 0) < MAX_SECONDS &&
    hasObject
  )
    return value as Stripe.Event;
  throw malformed();
}

/** In the year 9999. */
const MAX_SECONDS = 253_402_300_800;

function malformed(): AppError {
  return new AppError('malformed_json', {
    detail: 'The signed body is not an event of Stripe.',
    fix: 'Only Stripe calls this, with an event as JSON.',
  });
}

/** Returns null for types that concern no subscription. */
function findSubject({ type, data }: Stripe.Event): Subject | null {
  const object = data.object as { id: string; customer?: string | { id: string } | null };
  const customerId = idOf(object.customer);
  if (type.startsWith('customer.subscription.'))
    return { customerId, subscriptionId: object.id, sessionId: null };
  if (type.startsWith('invoice.')) {
    // Before the API version 2025-03-31, an invoice names its subscription at the top level.
    const { parent, subscription } = data.object as Stripe.Invoice & {
      subscription?: string | { id: string } | null;
    };
    const subscriptionId = idOf(parent?.subscription_details?.subscription ?? subscription);
    return subscriptionId === null ? null : { customerId, subscriptionId, sessionId: null };
  }
  if (type.startsWith('checkout.session.')) {
    const { subscription } = data.object as Stripe.Checkout.Session;
    return { customerId, subscriptionId: idOf(subscription), sessionId: object.id };
  }
  if (type.startsWith('subscription_schedule.')) {
    const { subscription } = data.object as Stripe.SubscriptionSchedule;
    return subscription === null ? null : { customerId, subscriptionId: idOf(subscription), sessionId: null };
  }
  if (type === 'customer.deleted' || type === 'customer.updated')
    return { customerId: object.id, subscriptionId: null, sessionId: null };
  return null;
}

/**
 * Finds the organization by the subscription first, because a customer that was deleted at Stripe may have been replaced.
 */
async function findOrganization(
  db: Db,
  { subscriptionId, customerId }: Subject,
): Promise<string | undefined> {
  const row = await db
    .selectFrom('billing_subscriptions')
    .select('org_id as organizationId')
    .where('id', '=', sql<string>`${subscriptionId}`)
    .unionAll(
      db
        .selectFrom('billing_customers')
        .select('org_id as organizationId')
        .where('customer_id', '=', sql<string>`${customerId}`),
    )
    .limit(1)
    .executeTakeFirst();
  return row?.organizationId;
}

async function insertEvent(
  db: Db,
  organizationId: string,
  { id, type, created }: Stripe.Event,
  { subscriptionId }: Subject,
): Promise<boolean> {
  const inserted = await db
    .insertInto('stripe_events')
    .values({
      id,
      org_id: organizationId,
      type,
      subscription_id: subscriptionId,
      created_at: new Date(created * 1_000),
      received_at: sql`now()`,
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .returning('id')
    .executeTakeFirst();
  return inserted !== undefined;
}

async function forgetSession(db: Db, organizationId: string, sessionId: string): Promise<void> {
  await db
    .updateTable('billing_customers')
    .set({ checkout_session_id: null, updated_at: sql`now()` })
    .where('org_id', '=', organizationId)
    .where('checkout_session_id', '=', sessionId)
    .execute();
}

async function requestNamed(db: Db, organizationId: string, id: string): Promise<string[]> {
  await db
    .insertInto('billing_subscriptions')
    .values({ id, org_id: organizationId, read_version: 0, requested_at: sql`now()` })
    .onConflict((conflict) =>
      conflict.column('id').doUpdateSet((eb) => ({ requested_at: eb.ref('excluded.requested_at') })),
    )
    .execute();
  return [id];
}

async function requestOpen(db: Db, organizationId: string): Promise<string[]> {
  const rows = await db
    .updateTable('billing_subscriptions')
    .set({ requested_at: sql`now()` })
    .where('org_id', '=', organizationId)
    .where('ended_at', 'is', null)
    .returning('id')
    .execute();
  return rows.map(({ id }) => id);
}
