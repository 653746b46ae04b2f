import { STORAGE_COUNTER, USAGE_COUNTERS, type UsageCounter } from '../usage/counters.ts';

/** Counters whose use beyond a soft limit can be billed. Storage is a level, of which there is no use within an hour. */
export type MeteredCounter = Exclude<UsageCounter, typeof STORAGE_COUNTER>;

export const METERED_COUNTERS: readonly MeteredCounter[] = USAGE_COUNTERS.filter(
  (counter): counter is MeteredCounter => counter !== STORAGE_COUNTER,
);

/** Metered prices at Stripe, by counter. */
export interface MeteredPrices {
  /** Those that a new subscription gets beside the price of its tier: the first of each counter. */
  readonly forSale: readonly string[];
  /** Undefined for a price that meters nothing that this service counts. */
  counterOf(priceId: string): MeteredCounter | undefined;
}

/**
 * @param setting `counter:price`, separated by commas.
 * @throws Error naming the entry that is wrong, at the start.
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
