import type { Logger } from 'pino';
import type Stripe from 'stripe';
import { callStripe, isForbidden, isMissing } from '../../platform/stripe/stripe-client.ts';
import type { MeteredCounter, MeteredPrices } from './metered-counters.ts';
import type { SubscriptionView } from './read-subscription.ts';

/** A counter that is metered for a subscription, and the format of its events. */
export interface MeterView {
  counter: MeteredCounter;
  priceId: string;
  meterId: string;
  eventName: string;
  customerField: string;
  valueField: string;
}

/** Null if the key may not read meters; then the metered counters stay as they are. */
export type MeterReader = (view: SubscriptionView) => Promise<MeterView[] | null>;

/**
 * Finds the meters of a subscription's metered prices. Asks Stripe for each meter once, since its event name never
 * changes.
 */
export function createMeterReader({
  stripe,
  prices,
  logger,
}: {
  stripe: Stripe;
  prices: MeteredPrices;
  logger: Pick<Logger, 'error'>;
}): MeterReader {
  const known = new Map<string, Stripe.Billing.Meter>();

  async function readMeter(id: string): Promise<Stripe.Billing.Meter | null> {
    const found = known.get(id);
    if (found) return found;
    try {
      const meter = await callStripe(() => stripe.billing.meters.retrieve(id));
      if (meter.status === 'active') known.set(id, meter);
      return meter;
    } catch (error) {
      if (isMissing(error)) return null;
      throw error;
    }
  }

  return async ({ id: subscriptionId, endedAt, metered }) => {
    const views = new Map<MeteredCounter, MeterView>();
    if (endedAt) return [];
    for (const { priceId, meterId } of metered) {
      const counter = prices.counterOf(priceId);
      if (!counter || views.has(counter)) continue;
      const report = (problem: string) =>
        logger.error({ subscriptionId, priceId, meterId, problem }, 'usage cannot be metered');
      let meter: Stripe.Billing.Meter | null;
      try {
        meter = await readMeter(meterId);
      } catch (error) {
        // A missing permission must not block the rest of the subscription.
        if (!isForbidden(error)) throw error;
        report('the key may not read meters');
        return null;
      }
      const problem = findProblem(meter);
      if (problem) report(problem);
      else if (meter)
        views.set(counter, {
          counter,
          priceId,
          meterId,
          eventName: meter.event_name,
          customerField: meter.customer_mapping.event_payload_key,
          valueField: meter.value_settings.event_payload_key,
        });
    }
    return [...views.values()];
  };
}

/** The units of an hour are summed. Any other aggregation would bill the wrong amount. */
function findProblem(meter: Stripe.Billing.Meter | null): string | null {
  if (!meter) return 'Stripe has no such meter';
  const {
    status,
    default_aggregation: { formula },
  } = meter;
  if (status !== 'active') return `the meter is ${status}`;
  return formula === 'sum' ? null : `the meter takes the ${formula} of its events, not their sum`;
}
