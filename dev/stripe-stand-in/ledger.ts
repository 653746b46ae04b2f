import { randomBytes } from 'node:crypto';

/** Objects of Stripe's API, as far as this service reads them. Times are seconds since 1970. */
export interface Customer {
  id: string;
  object: 'customer';
  deleted?: true;
  metadata: Record<string, string>;
  /** How its card behaves. Not a field of Stripe. */
  card: Card;
}
/** `bank`: the owner confirms each payment; `slow`: a debit that arrives days later. */
export type Card = 'works' | 'declined' | 'bank' | 'slow';

export interface Price {
  id: string;
  unit_amount: number;
  currency: string;
  /** The meter that it bills; unset for a fixed price. */
  meter?: string;
}

/** Use that was reported. */
export interface MeterEvent {
  identifier: string;
  event_name: string;
  customer: string;
  value: number;
  timestamp: number;
  /** When it arrived. */
  created: number;
}

export interface Session {
  id: string;
  object: 'checkout.session';
  status: 'open' | 'complete' | 'expired';
  payment_status: 'paid' | 'unpaid';
  customer: string;
  subscription: string | null;
  url: string;
  success_url: string;
  cancel_url: string;
  price: string;
  meteredPrices: string[];
  metadata: Record<string, string>;
}

export interface Subscription {
  id: string;
  object: 'subscription';
  customer: string;
  status: string;
  price: string;
  meteredPrices: string[];
  period: { start: number; end: number };
  cancel_at_period_end: boolean;
  cancel_at: number | null;
  canceled_at: number | null;
  ended_at: number | null;
  schedule: string | null;
  pendingPrice: string | null;
  latestInvoice: string | null;
}

export interface Invoice {
  id: string;
  object: 'invoice';
  customer: string;
  subscription: string;
  status: 'draft' | 'open' | 'paid' | 'void';
  amount_due: number;
  currency: string;
  attempted: boolean;
  attempt_count: number;
  next_payment_attempt: number | null;
  created: number;
  /** What it is for. */
  purpose: 'create' | 'cycle' | 'update';
}

export interface Schedule {
  id: string;
  object: 'subscription_schedule';
  subscription: string;
  status: 'active' | 'released';
  phases: { start: number; end: number | null; price: string }[];
}

export interface StripeEventRecord {
  id: string;
  object: 'event';
  api_version: string;
  type: string;
  created: number;
  livemode: boolean;
  account?: string;
  data: { object: object };
}

/** An account at Stripe, with a clock of its own. */
export interface Ledger {
  customers: Map<string, Customer>;
  prices: Map<string, Price>;
  sessions: Map<string, Session>;
  subscriptions: Map<string, Subscription>;
  invoices: Map<string, Invoice>;
  schedules: Map<string, Schedule>;
  /** By identifier. */
  meterEvents: Map<string, MeterEvent>;
  events: StripeEventRecord[];
  /** Seconds since 1970. */
  now: number;
  /** What follows the last failed attempt: a setting of the account. */
  afterRetries: 'unpaid' | 'canceled';
  origin: string;
  onEvent: (event: StripeEventRecord) => void;
}

export const newStripeId = (prefix: string): string => `${prefix}_${randomBytes(12).toString('hex')}`;

export function createLedger({
  prices,
  now,
  origin,
}: {
  prices: Price[];
  now: number;
  origin: string;
}): Ledger {
  return {
    customers: new Map(),
    prices: new Map(prices.map((price) => [price.id, price])),
    sessions: new Map(),
    subscriptions: new Map(),
    invoices: new Map(),
    schedules: new Map(),
    meterEvents: new Map(),
    events: [],
    now,
    afterRetries: 'unpaid',
    origin,
    onEvent: () => undefined,
  };
}

/** An error as Stripe answers it. */
export class StandInError extends Error {
  readonly status: number;
  readonly type: string;
  readonly code: string | undefined;
  constructor(
    status: number,
    message: string,
    { type = 'invalid_request_error', code }: { type?: string; code?: string } = {},
  ) {
    super(message);
    this.status = status;
    this.type = type;
    this.code = code;
  }
}

export const missing = (what: string, id: string) =>
  new StandInError(404, `No such ${what}: '${id}'`, { code: 'resource_missing' });
export const declined = () =>
  new StandInError(402, 'Your card was declined.', { type: 'card_error', code: 'card_declined' });

export function requireCustomer(ledger: Ledger, id: string): Customer {
  const customer = ledger.customers.get(id);
  if (!customer || customer.deleted) throw missing('customer', id);
  return customer;
}
