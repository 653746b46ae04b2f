import { type Static, type TSchema, Type } from 'typebox';
import { type Envelope, envelope } from '../../domain/events/envelope.ts';
import type { Event } from '../../domain/events/event.entity.ts';
import { EVENT_TYPES, type EventType } from '../../domain/events/event-types.ts';
import { USAGE_COUNTERS } from '../../domain/usage/counters.ts';
import { pageQuery } from '../lists.ts';
import { choice, closed, id, text, timestamp } from '../schemas.ts';

/** Largest mail the service takes; nothing read from one is longer. */
const MAX_TEXT = 37_748_736;
const address = text(1024, { description: 'Email address.' });
const addresses = Type.Array(address, { maxItems: 10_000 });
const subject = text(MAX_TEXT);

const message = {
  message_id: id('Message (msg_…).'),
  thread_id: id('Thread (thr_…).'),
  inbox_id: id('Inbox (inb_…).'),
};
const usage = closed({
  counter: choice(USAGE_COUNTERS),
  current: Type.Number({ minimum: 0 }),
  limit: Type.Number({ minimum: 0, description: 'What the plan, or a cap of your own, allows.' }),
  percentage: Type.Number({
    minimum: 0,
    description: 'current as a share of limit; 100 and above: exceeded.',
  }),
  threshold: Type.Integer({
    minimum: 1,
    maximum: 100,
    description: 'The percentage that was reached: the warning threshold, or 100.',
  }),
  period_start: timestamp('Start of the month.'),
  period_end: timestamp('Start of the next one; all counters but storage_bytes start anew.'),
});
const recordStatus = choice(['pending', 'verified', 'failed']);

/** `data` of each type, exactly as it is sent. */
const DATA: Record<EventType, TSchema> = {
  'message.received': closed({
    ...message,
    from_address: address,
    to_addresses: addresses,
    subject,
    extracted_text: text(MAX_TEXT, { description: 'What was written anew, without quoted history.' }),
    has_attachments: Type.Boolean(),
    received_at: timestamp(),
    truncated: Type.Optional(
      Type.Literal(true, {
        description:
          'Only where the body would have been over 256 KiB: extracted_text is cut, the message has it whole.',
      }),
    ),
  }),
  'message.sent': closed({
    ...message,
    from_address: address,
    to_addresses: addresses,
    subject,
    provider_message_id: text(1024),
    sent_at: timestamp(),
  }),
  'message.delivered': closed({
    ...message,
    to_addresses: addresses,
    delivered_at: timestamp(),
    processing_time_ms: Type.Number({ minimum: 0, description: 'From sending to the confirmation.' }),
  }),
  'message.bounced': closed({
    ...message,
    bounce_type: choice(['Permanent', 'Transient']),
    bounce_sub_type: choice(['General', 'NoEmail', 'Suppressed']),
    bounced_recipients: Type.Array(
      closed({ email_address: address, status: text(64), diagnostic_code: text(MAX_TEXT) }),
      { maxItems: 10_000 },
    ),
    bounced_at: timestamp(),
  }),
  'message.complained': closed({
    message_id: message.message_id,
    inbox_id: message.inbox_id,
    complained_recipients: addresses,
    feedback_type: text(255),
    complained_at: timestamp(),
  }),
  'message.rejected': closed({
    inbox_id: message.inbox_id,
    from_address: address,
    to_addresses: addresses,
    subject,
    rejection_reason: choice(['blocked_recipient', 'rate_limited', 'account_paused']),
    rejection_detail: text(MAX_TEXT),
    rejected_at: timestamp(),
  }),
  'domain.verified': closed({
    domain_id: id('Domain (dom_…).'),
    domain_name: text(253),
    verification_status: Type.Literal('verified'),
    spf_status: recordStatus,
    dkim_status: recordStatus,
    dmarc_status: recordStatus,
    verified_at: timestamp(),
  }),
  'usage.warning': usage,
  'usage.exceeded': usage,
};

const eventOf = (type: TSchema, data: TSchema, name: string, description: string) =>
  closed(
    {
      id: id('Event (evt_…); the same however often it is delivered.'),
      type,
      timestamp: timestamp('When it happened.'),
      org_id: id('Organization.'),
      env_id: id('Environment; of what concerns the whole organization, the production one.'),
      data,
    },
    { $id: name, title: name, description },
  );

/** Name of a type's schema: `MessageReceivedEvent`. */
export const eventSchemaName = (type: EventType) =>
  `${type.replace(/(^|\.)([a-z])/g, (_, _dot, letter: string) => letter.toUpperCase())}Event`;

/** One schema for each type, with its `data`. */
export const eventSchemas = EVENT_TYPES.map((type) =>
  eventOf(Type.Literal(type), DATA[type], eventSchemaName(type), `The body of a \`${type}\` webhook.`),
);

/** An event of any type. */
export const EventRecord = eventOf(
  choice(EVENT_TYPES),
  Type.Unsafe<Envelope['data']>({
    type: 'object',
    additionalProperties: true,
    description: 'By type, as the schemas of the webhooks say.',
  }),
  'Event',
  'Something that happened, as webhooks tell it.',
);

export const EventQuery = closed({
  ...pageQuery,
  type: Type.Optional(choice(EVENT_TYPES)),
  inbox_id: Type.Optional(id('Only events of this inbox.')),
  before: Type.Optional(Type.String({ format: 'date-time', maxLength: 40, description: 'Recorded before.' })),
  after: Type.Optional(
    Type.String({ format: 'date-time', maxLength: 40, description: 'Recorded at or after.' }),
  ),
  starting_after: Type.Optional(
    id(
      'An event id: those behind it, in the order asked for. With order=asc and the last event you know, you hear of everything since, late commits too.',
    ),
  ),
});

export function presentEvent(event: Event): Static<typeof EventRecord> {
  return envelope(event) as Static<typeof EventRecord>;
}
