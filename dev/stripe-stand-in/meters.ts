import { type FormBody, textOf } from './form-body.ts';
import { type Ledger, missing, newStripeId, requireCustomer, StandInError } from './ledger.ts';

export interface StandInRequest {
  ledger: Ledger;
  /** The id in the path. */
  id: string;
  body: FormBody;
  query: URLSearchParams;
}

export type Operation = (request: StandInRequest) => object;

export const list = (data: object[]) => ({ object: 'list', has_more: false, data });

const METER_EVENT_LIFETIME_S = 35 * 86_400;
const METER_IDENTIFIER_LIFETIME_S = 86_400;

/** Use that is reported. The event name of a meter is its id without the prefix. */
export const METER_OPERATIONS: Record<string, Operation> = {
  'POST /v1/billing/meter_events': ({ ledger, body }) => {
    const payload = (body.payload ?? {}) as Record<string, string>;
    const identifier = textOf(body.identifier) ?? newStripeId('mev');
    const timestamp = Number(textOf(body.timestamp) ?? ledger.now);
    const { id: customer } = requireCustomer(ledger, payload.stripe_customer_id ?? '');
    if (timestamp < ledger.now - METER_EVENT_LIFETIME_S)
      throw new StandInError(400, 'The timestamp must be within the past 35 calendar days.');
    const earlier = ledger.meterEvents.get(identifier);
    if (earlier && ledger.now - earlier.created < METER_IDENTIFIER_LIFETIME_S)
      throw new StandInError(400, `An event already exists with identifier ${identifier}.`);
    const event = {
      identifier,
      event_name: textOf(body.event_name) ?? '',
      customer,
      value: Number(payload.value),
      timestamp,
      created: ledger.now,
    };
    // An identifier that Stripe has forgotten counts again.
    ledger.meterEvents.set(earlier ? `${identifier}/${ledger.now}` : identifier, event);
    return { object: 'billing.meter_event', ...event, payload };
  },
  'GET /v1/billing/meters/:id': ({ ledger, id }) => {
    if (![...ledger.prices.values()].some(({ meter }) => meter === id)) throw missing('billing meter', id);
    return {
      id,
      object: 'billing.meter',
      status: 'active',
      event_name: id.replace(/^mtr_/, ''),
      default_aggregation: { formula: 'sum' },
      customer_mapping: { type: 'by_id', event_payload_key: 'stripe_customer_id' },
      value_settings: { event_payload_key: 'value' },
    };
  },
  'GET /v1/billing/meters/:id/event_summaries': ({ ledger, id, query }) => {
    const [start, end] = [Number(query.get('start_time')), Number(query.get('end_time'))];
    const events = [...ledger.meterEvents.values()].filter(
      (event) =>
        `mtr_${event.event_name}` === id &&
        event.customer === query.get('customer') &&
        event.timestamp >= start &&
        event.timestamp < end,
    );
    const value = events.reduce((sum, event) => sum + event.value, 0);
    return list([{ object: 'billing.meter_event_summary', meter: id, aggregated_value: value }]);
  },
};
