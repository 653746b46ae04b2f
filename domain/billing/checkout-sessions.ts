import { sql } from 'kysely';
import type Stripe from 'stripe';
import { sha256 } from '../../platform/crypto.ts';
import type { Database, TenantScope } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { callStripe, isMissing } from '../../platform/stripe/stripe-client.ts';
import { organizationDeleted } from '../identity/authentication.ts';
import type { Tier } from '../organizations/tier.ts';

export interface CheckoutDetails {
  customerId: string;
  price: string;
  /** Prices of use beyond the tier's limits. */
  meteredPrices: readonly string[];
  tier: Tier;
  successUrl: string;
  cancelUrl: string;
  /** The session before this one. */
  previous: string | null;
  /** The subscription before this one. */
  previousSubscription: string | null;
}

/** Concurrent calls may each begin a session; the last one counts. */
const MAX_ATTEMPTS = 5;

/**
 * Returns the checkout session for the tier. An open session for the same tier is reused, and any other one is expired, so
 * that two sessions can never both be paid, even with concurrent calls.
 *
 * @throws AppError `conflict` if a session was paid meanwhile.
 */
export async function openCheckout(
  { database, stripe }: { database: Database; stripe: Stripe },
  scope: TenantScope,
  details: CheckoutDetails,
): Promise<{ id: string; url: string }> {
  const { customerId, price, meteredPrices, successUrl, cancelUrl } = details;
  // Stripe does not show the price of a session without another request.
  const fingerprint = sha256(JSON.stringify([customerId, price, successUrl, cancelUrl, ...meteredPrices]))
    .toString('hex')
    .slice(0, 40);
  let current = details.previous;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const open = current === null ? null : await findOpenSession(stripe, current);
    if (open?.url && open.metadata?.fingerprint === fingerprint) return { id: open.id, url: open.url };
    if (open) await expireSession(stripe, open.id);
    const session = await createOpenSession(stripe, scope, { ...details, fingerprint, previous: current });
    const saved = await saveCheckoutSession(database, scope, { sessionId: session.id, previous: current });
    if (saved === session.id) return session;
    // Another call has saved its session first.
    await expireSession(stripe, session.id);
    current = saved;
  }
  throw new AppError('conflict', {
    detail: 'Other checkouts of the organization were started at the same time.',
    fix: 'Try again.',
  });
}

/** For a repeated key, Stripe answers with the session of the first request, which may have ended since. */
async function createOpenSession(
  stripe: Stripe,
  scope: TenantScope,
  details: CheckoutDetails & { fingerprint: string },
): Promise<{ id: string; url: string }> {
  const { customerId, price, meteredPrices, tier, successUrl, cancelUrl, fingerprint } = details;
  let previous = details.previous ?? details.previousSubscription ?? 'first';
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const { id } = await callStripe(() =>
      stripe.checkout.sessions.create(
        {
          mode: 'subscription',
          customer: customerId,
          client_reference_id: scope.organizationId,
          line_items: [{ price, quantity: 1 }, ...meteredPrices.map((metered) => ({ price: metered }))],
          success_url: successUrl,
          cancel_url: cancelUrl,
          metadata: { organization_id: scope.organizationId, tier, fingerprint },
          subscription_data: { metadata: { organization_id: scope.organizationId } },
        },
        // Concurrent calls get the same session.
        { idempotencyKey: `checkout/${fingerprint}/${previous}` },
      ),
    );
    const session = await findOpenSession(stripe, id);
    if (session?.url) return { id, url: session.url };
    previous = id;
  }
  throw new AppError('unavailable', {
    detail: 'Stripe gave no page for the checkout.',
    fix: 'Try again in a minute.',
  });
}

async function findOpenSession(stripe: Stripe, id: string): Promise<Stripe.Checkout.Session | null> {
  const session = await findSession(stripe, id);
  return session?.status === 'open' ? session : null;
}

async function findSession(stripe: Stripe, id: string): Promise<Stripe.Checkout.Session | null> {
  try {
    return await callStripe(() => stripe.checkout.sessions.retrieve(id));
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** Does nothing if it has expired. @throws AppError `conflict` if it was paid. */
async function expireSession(stripe: Stripe, id: string): Promise<void> {
  if ((await endSession(stripe, id)) === 'paid')
    throw new AppError('conflict', {
      detail: 'The organization has just completed a checkout.',
      fix: 'Get the subscription: GET /billing/subscription.',
    });
}

/** Expires the session if it is open. @throws AppError `unavailable`. */
async function endSession(stripe: Stripe, id: string): Promise<'expired' | 'paid'> {
  try {
    await callStripe(() => stripe.checkout.sessions.expire(id));
    return 'expired';
  } catch (error) {
    const status = (await findSession(stripe, id))?.status ?? 'expired';
    if (status === 'open') throw error;
    return status === 'complete' ? 'paid' : 'expired';
  }
}

/** `none`: there was no session, or the organization is open again. `paid`: an operator has to resolve it. */
export type CheckoutClosing = 'none' | 'expired' | 'paid';

/**
 * Expires the open checkout of a closed organization, whose owner could otherwise still pay. If the checkout has already
 * been paid, reading its subscription reports the problem `organization_closed`.
 */
export function createCheckoutClosing({
  database,
  stripe,
}: {
  database: Database;
  stripe: Stripe;
}): (deletionId: string) => Promise<CheckoutClosing> {
  return async (deletionId) => {
    const customer = await database.db
      .selectFrom('deletions as d')
      .innerJoin('organizations as o', 'o.id', 'd.subject_id')
      .innerJoin('billing_customers as c', 'c.org_id', 'o.id')
      .select(['c.org_id as organizationId', 'c.checkout_session_id as sessionId'])
      .where('d.id', '=', deletionId)
      .where('d.kind', '=', 'organization')
      .where('o.deleted_at', 'is not', null)
      .where('c.checkout_session_id', 'is not', null)
      .$narrowType<{ sessionId: string }>()
      .executeTakeFirst();
    if (!customer) return 'none';
    const { organizationId, sessionId } = customer;
    const outcome = await endSession(stripe, sessionId);
    await database.db
      .updateTable('billing_customers')
      .set({ checkout_session_id: null, updated_at: sql`now()` })
      .where('org_id', '=', organizationId)
      .where('checkout_session_id', '=', sessionId)
      .execute();
    return outcome;
  };
}

/**
 * Saves the session, unless another one has been saved since `previous` was read. If the organization is being closed at
 * the same time, the closing waits, and then expires the session.
 *
 * @returns the session that is saved.
 * @throws AppError `organization_deleted` if the organization has been closed meanwhile.
 */
export function saveCheckoutSession(
  database: Database,
  scope: TenantScope,
  { sessionId, previous }: { sessionId: string; previous: string | null },
): Promise<string | null> {
  const { organizationId } = scope;
  return database.transaction(scope, async ({ db }) => {
    const open = await db
      .selectFrom('organizations')
      .select('id')
      .where('id', '=', organizationId)
      .where('deleted_at', 'is', null)
      .forShare()
      .executeTakeFirst();
    if (!open) throw organizationDeleted(organizationId);
    const saved = await db
      .updateTable('billing_customers')
      .set({ checkout_session_id: sessionId, updated_at: sql`now()` })
      .where('org_id', '=', organizationId)
      .where('checkout_session_id', 'is not distinct from', previous)
      .returning('org_id')
      .executeTakeFirst();
    if (saved) return sessionId;
    const customer = await db
      .selectFrom('billing_customers')
      .select('checkout_session_id as sessionId')
      .where('org_id', '=', organizationId)
      .executeTakeFirst();
    return customer?.sessionId ?? null;
  });
}
