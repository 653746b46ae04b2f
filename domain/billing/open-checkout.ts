import type Stripe from 'stripe';
import { sha256 } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { callStripe, isMissing } from '../../platform/stripe/stripe-client.ts';
import type { Scope } from '../identity/scope.ts';
import type { Tier } from '../organizations/tier.ts';
import { saveCheckoutSession } from './customer-rows.ts';

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
}

/**
 * Returns the checkout session for the tier. An open one for the same is used again, and one for something else expires, so
 * that two of them cannot be paid.
 */
export async function openCheckout(
  { database, stripe }: { database: Database; stripe: Stripe },
  scope: Scope,
  details: CheckoutDetails,
): Promise<{ id: string; url: string }> {
  const { customerId, price, meteredPrices, tier, successUrl, cancelUrl, previous } = details;
  const open = previous === null ? null : await findOpenSession(stripe, previous);
  // Stripe does not show the price of a session without another request.
  const fingerprint = sha256(JSON.stringify([customerId, price, successUrl, cancelUrl, ...meteredPrices]))
    .toString('hex')
    .slice(0, 40);
  if (open?.url && open.metadata?.fingerprint === fingerprint) return { id: open.id, url: open.url };
  if (open) await callStripe(() => stripe.checkout.sessions.expire(open.id));
  const metadata = { organization_id: scope.organizationId, tier, fingerprint };
  const session = await callStripe(() =>
    stripe.checkout.sessions.create(
      {
        mode: 'subscription',
        customer: customerId,
        client_reference_id: scope.organizationId,
        line_items: [{ price, quantity: 1 }, ...meteredPrices.map((metered) => ({ price: metered }))],
        success_url: successUrl,
        cancel_url: cancelUrl,
        metadata,
        subscription_data: { metadata: { organization_id: scope.organizationId } },
      },
      // Two calls at the same time get the same session.
      { idempotencyKey: `checkout/${fingerprint}/${previous ?? 'first'}` },
    ),
  );
  await saveCheckoutSession(database, scope, session.id);
  if (session.url) return { id: session.id, url: session.url };
  throw new AppError('unavailable', {
    detail: 'Stripe gave no page for the checkout.',
    fix: 'Try again in a minute.',
  });
}

async function findOpenSession(stripe: Stripe, id: string): Promise<Stripe.Checkout.Session | null> {
  try {
    const session = await callStripe(() => stripe.checkout.sessions.retrieve(id));
    return session.status === 'open' ? session : null;
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
