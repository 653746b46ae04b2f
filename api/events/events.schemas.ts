import { type Static, type TSchema, Type } from 'typebox';
import { buildEnvelope, type Envelope } from '../../domain/events/envelope.ts';
import type { Event } from '../../domain/events/event.entity.ts';
import { EVENT_TYPES, type EventType } from '../../domain/events/event-types.ts';
import { USAGE_COUNTERS } from '../../domain/usage/counters.ts';
import { pageQuery } from '../lists.ts';
import { enumOf, id, nullableText, nullableTimestamp, strictObject, text, timestamp } from '../schemas.ts';

/** The largest message the service accepts; no text in it can be longer. */
const MAX_TEXT_LENGTH = 37_748_736;
const address = text(1024, { description: 'Email address.' });
const addresses = Type.Array(address, { maxItems: 10_000 });
const subject = text(MAX_TEXT_LENGTH);

const message = {
  message_id: id('Message (msg_…).'),
  thread_id: id('Thread (thr_…).'),
  inbox_id: id('Inbox (inb_…).'),
};
const draft = {
  draft_id: id('Draft (drf_…).'),
  inbox_id: message.inbox_id,
  to_addresses: addresses,
  subject,
  version: Type.Integer({ minimum: 1 }),
};
const nullableId = (description: string) => nullableText(64, { description });
const MAX_NOTE_LENGTH = 2_000;
const usage = strictObject({
  counter: enumOf(USAGE_COUNTERS),
  current: Type.Number({ minimum: 0 }),
  limit: Type.Number({ minimum: 0, description: 'The limit of the plan, or your own limit if it is lower.' }),
  percentage: Type.Number({
    minimum: 0,
    description: 'current as a percentage of limit. 100 or more: exceeded.',
  }),
  threshold: Type.Integer({
    minimum: 1,
    maximum: 100,
    description: 'The threshold that was reached: the warning threshold or 100.',
  }),
  period_start: timestamp('Start of the month.'),
  period_end: timestamp('Start of the next month, when all counters except storage_bytes reset.'),
});
const recordStatus = enumOf(['pending', 'verified', 'failed']);

/** `data` of each type, exactly as it is sent. */
const DATA_SCHEMAS: Record<EventType, TSchema> = {
  'message.received': strictObject({
    ...message,
    from_address: address,
    to_addresses: addresses,
    subject,
    extracted_text: text(MAX_TEXT_LENGTH, {
      description: 'The new text of the message, without quoted history.',
    }),
    has_attachments: Type.Boolean(),
    received_at: timestamp(),
    truncated: Type.Optional(
      Type.Literal(true, {
        description:
          'Present only if the body would exceed 256 KiB: extracted_text is truncated; the message has the full text.',
      }),
    ),
  }),
  'message.sent': strictObject({
    ...message,
    from_address: address,
    to_addresses: addresses,
    subject,
    provider_message_id: text(1024),
    sent_at: timestamp(),
  }),
  'message.delivered': strictObject({
    ...message,
    to_addresses: addresses,
    delivered_at: timestamp(),
    processing_time_ms: Type.Number({
      minimum: 0,
      description: 'Time from sending to the delivery confirmation.',
    }),
  }),
  'message.bounced': strictObject({
    ...message,
    bounce_type: enumOf(['Permanent', 'Transient']),
    bounce_sub_type: enumOf(['General', 'NoEmail', 'Suppressed']),
    bounced_recipients: Type.Array(
      strictObject({ email_address: address, status: text(64), diagnostic_code: text(MAX_TEXT_LENGTH) }),
      { maxItems: 10_000 },
    ),
    bounced_at: timestamp(),
  }),
  'message.complained': strictObject({
    message_id: message.message_id,
    inbox_id: message.inbox_id,
    complained_recipients: addresses,
    feedback_type: text(255),
    complained_at: timestamp(),
  }),
  'message.rejected': strictObject({
    inbox_id: message.inbox_id,
    from_address: address,
    to_addresses: addresses,
    subject,
    rejection_reason: enumOf(['blocked_recipient', 'rate_limited', 'account_paused']),
    rejection_detail: text(MAX_TEXT_LENGTH),
    rejected_at: timestamp(),
  }),
  'draft.pending_approval': strictObject({
    ...draft,
    from_address: address,
    requested_at: timestamp(),
    expires_at: timestamp('When the draft is rejected if no person has decided by then.'),
  }),
  'draft.approved': strictObject({
    ...draft,
    message_id: nullableId('Message (msg_…) that the draft became; null if it is scheduled.'),
    send_at: nullableTimestamp('When it is sent; null if it was sent.'),
    note: nullableText(MAX_NOTE_LENGTH),
    approved_by: id('User (usr_…).'),
    approved_at: timestamp(),
  }),
  'draft.rejected': strictObject({
    ...draft,
    decision: enumOf(['rejected', 'expired', 'canceled', 'requester_not_allowed'], {
      description:
        'How it was decided: by a person, by expiry, by an operator of the service, or when it was due, because its requester or approver may no longer let it leave.',
    }),
    note: nullableText(MAX_NOTE_LENGTH),
    rejected_by: nullableId('User (usr_…); null unless a person decided.'),
    rejected_at: timestamp(),
  }),
  'domain.verified': strictObject({
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

const eventSchema = (type: TSchema, data: TSchema, name: string, description: string) =>
  strictObject(
    {
      id: id('Event (evt_…). The same in every delivery of the event.'),
      type,
      timestamp: timestamp('When the event happened.'),
      org_id: id('Organization.'),
      env_id: id('Environment. Organization-wide events carry the production environment.'),
      data,
      redacted: Type.Optional(
        Type.Literal(true, {
          description:
            'Present only if what the event is about was deleted: strings of `data` are empty then, and arrays have no elements.',
        }),
      ),
    },
    { $id: name, title: name, description },
  );

/** Name of a type's schema: `MessageReceivedEvent`. */
export const eventSchemaName = (type: EventType) =>
  `${type.replace(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())}Event`;

/** One schema for each type, with its `data`. */
export const eventSchemas = EVENT_TYPES.map((type) =>
  eventSchema(
    Type.Literal(type),
    DATA_SCHEMAS[type],
    eventSchemaName(type),
    `The body of a \`${type}\` webhook.`,
  ),
);

/** An event of any type. */
export const EventRecord = eventSchema(
  enumOf(EVENT_TYPES),
  Type.Unsafe<Envelope['data']>({
    type: 'object',
    additionalProperties: true,
    description: 'Depends on the type; see the webhook schemas.',
  }),
  'Event',
  'An event, in the envelope of webhooks.',
);

export const EventQuery = strictObject({
  ...pageQuery,
  type: Type.Optional(enumOf(EVENT_TYPES, { description: 'Only events of this type.' })),
  inbox_id: Type.Optional(id('Only events of this inbox.')),
  message_id: Type.Optional(id('Only events about this message (msg_…).')),
  before: Type.Optional(
    Type.String({
      format: 'date-time',
      maxLength: 40,
      description: 'Only events recorded before this time.',
    }),
  ),
  after: Type.Optional(
    Type.String({
      format: 'date-time',
      maxLength: 40,
      description: 'Only events recorded at or after this time.',
    }),
  ),
  starting_after: Type.Optional(
    id(
      'An event id: lists the events after it, in the requested order. Use order=asc and the last event you received to get everything since, including late commits.',
    ),
  ),
});

export function presentEvent(event: Event): Static<typeof EventRecord> {
  return buildEnvelope(event) as Static<typeof EventRecord>;
}
