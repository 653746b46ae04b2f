import type { Db } from '../../platform/database/tables.ts';
import { STORAGE_COUNTER, USAGE_COUNTERS, type UsageCounter } from '../usage/counters.ts';

/**
 * Counters whose use beyond a soft limit can be billed. Storage cannot, because it is a level and not an amount used within
 * an hour.
 */
export type MeteredCounter = Exclude<UsageCounter, typeof STORAGE_COUNTER>;

export const METERED_COUNTERS: readonly MeteredCounter[] = USAGE_COUNTERS.filter(
  (counter): counter is MeteredCounter => counter !== STORAGE_COUNTER,
);

/** Metered prices at Stripe, by counter. */
export interface MeteredPrices {
  /** The metered prices of a new subscription, in addition to the price of its tier: the first price of each counter. */
  readonly forSale: readonly string[];
  /** Undefined for a price without a counter of this service. */
  counterOf(priceId: string): MeteredCounter | undefined;
}

/**
 * @param setting `counter:price`, separated by commas.
 * @throws Error that names the invalid entry.
 */
export function readMeteredPrices(setting: string | undefined): MeteredPrices {
  const counters = new Map<string, MeteredCounter>();
  const forSale = new Map<MeteredCounter, string>();
  for (const entry of (setting ?? '').split(',').map((part) => part.trim())) {
    if (entry === '') continue;
    const [name = '', price = '', ...rest] = entry.split(':').map((part) => part.trim());
    const counter = METERED_COUNTERS.find((known) => known === name);
    if (!counter || price === '' || rest.length > 0)
      throw new Error(
        `STRIPE_METERED_PRICES: "${entry}" is not counter:price, with a counter of ${METERED_COUNTERS.join(', ')}`,
      );
    if (counters.has(price)) throw new Error(`STRIPE_METERED_PRICES names the price ${price} twice`);
    counters.set(price, counter);
    if (!forSale.has(counter)) forSale.set(counter, price);
  }
  return { forSale: [...forSale.values()], counterOf: (priceId) => counters.get(priceId) };
}

/** Whether use beyond the limit of the organization's tier is billed. */
export async function isMetered(db: Db, organizationId: string, counter: UsageCounter): Promise<boolean> {
  const metered = METERED_COUNTERS.find((known) => known === counter);
  if (!metered) return false;
  const meter = await db
    .selectFrom('billing_meters')
    .select('counter')
    .where('org_id', '=', organizationId)
    .where('counter', '=', metered)
    .where('ended_at', 'is', null)
    .limit(1)
    .executeTakeFirst();
  return meter !== undefined;
}
