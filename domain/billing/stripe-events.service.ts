import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import Stripe from 'stripe';
import type { Database } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { buildSyncCommand } from './billing-starts.ts';
import { idOf } from './read-subscription.ts';
import { isPlausibleSignature } from './stripe-signature.ts';

export type StripeEventResult = 'accepted' | 'duplicate' | 'ignored';

export interface StripeEventService {
  /**
   * Checks what shows without the body, so that it need not be read.
   *
   * @throws AppError `unauthenticated`.
   */
  requirePlausible(signature: string | undefined): void;
  /**
   * Takes an event. It takes effect once, by its id: the commit of that precedes the answer to Stripe, and a run reads the
   * subscription back afterwards.
   *
   * @param body the bytes as received, since the signature covers them.
   * @throws AppError `unauthenticated` for a missing, wrong or old signature.
   */
  take(body: Buffer, signature: string | undefined): Promise<StripeEventResult>;
}

export interface StripeEventOptions {
  /** Connected as a worker: an event may concern any organization. */
  database: Database;
  stripe: Pick<Stripe, 'webhooks'>;
  outbox: Pick<Outbox, 'enqueue'>;
  /** All are valid, the newest first. */
  webhookSecrets: readonly string[];
  /** Whether the service works with live money. */
  isLive: boolean;
  logger: Pick<Logger, 'warn'>;
}

/** What an event is about. Null ids are not named by it. */
interface Subject {
  customerId: string | null;
  subscriptionId: string | null;
  /** A checkout session that is over. */
  sessionId: string | null;
}

export function createStripeEventService(options: StripeEventOptions): StripeEventService {
  const { database, outbox, isLive, logger } = options;
  return {
    requirePlausible(signature) {
      if (!isPlausibleSignature(signature)) throw notSigned();
    },

    async take(body, signature) {
      const event = verify(options, body, signature);
      const about = { eventId: event.id, type: event.type };
      if (event.livemode !== isLive) return ignore('it belongs to the other mode');
      if (event.account) return ignore('it belongs to another account');
      const subject = findSubject(event);
      if (!subject) return ignore('it concerns no subscription');
      if (Object.values(subject).some((id) => id !== null && !isText(id))) throw malformed();
      return database.systemTransaction(async (transaction) => {
        const { em } = transaction;
        const organizationId = await findOrganization(em, subject);
        if (!organizationId) return ignore('its customer is unknown');
        if (!(await insertEvent(em, organizationId, event, subject))) return 'duplicate';
        if (subject.sessionId) await forgetSession(em, organizationId, subject.sessionId);
        const ids = subject.subscriptionId
          ? await requestNamed(em, organizationId, subject.subscriptionId)
          : await requestOpen(em, organizationId);
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

/** The signature proves who has sent a body, not that it has the form of an event. */
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

/** Of the year 9999. */
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

/** By the subscription, because a customer that was deleted at Stripe may have been replaced. */
async function findOrganization(
  em: EntityManager,
  { subscriptionId, customerId }: Subject,
): Promise<string | undefined> {
  const [row] = await em.execute<{ organizationId: string }[]>(sql`
    select org_id as "organizationId" from billing_subscriptions where id = ${subscriptionId}
    union all
    select org_id from billing_customers where customer_id = ${customerId} limit 1`);
  return row?.organizationId;
}

async function insertEvent(
  em: EntityManager,
  organizationId: string,
  { id, type, created }: Stripe.Event,
  { subscriptionId }: Subject,
): Promise<boolean> {
  const inserted = await em.execute<unknown[]>(sql`
    insert into stripe_events (id, org_id, type, subscription_id, created_at, received_at)
    values (${id}, ${organizationId}, ${type}, ${subscriptionId}, ${new Date(created * 1_000)}, now())
    on conflict (id) do nothing returning 1`);
  return inserted.length > 0;
}

async function forgetSession(em: EntityManager, organizationId: string, sessionId: string): Promise<void> {
  await em.execute(sql`
    update billing_customers set checkout_session_id = null, updated_at = now()
    where org_id = ${organizationId} and checkout_session_id = ${sessionId}`);
}

async function requestNamed(em: EntityManager, organizationId: string, id: string): Promise<string[]> {
  await em.execute(sql`
    insert into billing_subscriptions (id, org_id, read_version, requested_at, created_at)
    values (${id}, ${organizationId}, 0, now(), now())
    on conflict (id) do update set requested_at = excluded.requested_at`);
  return [id];
}

async function requestOpen(em: EntityManager, organizationId: string): Promise<string[]> {
  const rows = await em.execute<{ id: string }[]>(sql`
    update billing_subscriptions set requested_at = now()
    where org_id = ${organizationId} and ended_at is null returning id`);
  return rows.map(({ id }) => id);
}
