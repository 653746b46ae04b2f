import { newId } from '../../platform/ids.ts';
import type { EventDataByType, EventType } from '../events/event-types.ts';
import { monthOf } from '../usage/periods.ts';

/** What made-up data is made around. */
interface Occasion {
  inboxId: string;
  at: Date;
}

/** Data as an event of the type has, made up: its ids name nothing, its addresses nobody (RFC 2606). */
export function sampleData<Type extends EventType>(type: Type, occasion: Occasion): EventDataByType[Type] {
  return SAMPLES[type](occasion);
}

const AGENT = 'agent@example.com';
const CUSTOMER = 'customer@example.net';
const SUBJECT = 'Test event: your order';

const SAMPLES: { [Type in EventType]: (occasion: Occasion) => EventDataByType[Type] } = {
  'message.received': (occasion) => ({
    ...messageOf(occasion),
    from_address: CUSTOMER,
    to_addresses: [AGENT],
    subject: SUBJECT,
    extracted_text: 'This is a test event. Where is my order?',
    has_attachments: false,
    received_at: timeOf(occasion),
  }),
  'message.sent': (occasion) => ({
    ...messageOf(occasion),
    from_address: AGENT,
    to_addresses: [CUSTOMER],
    subject: SUBJECT,
    provider_message_id: 'test-event',
    sent_at: timeOf(occasion),
  }),
  'message.delivered': (occasion) => ({
    ...messageOf(occasion),
    to_addresses: [CUSTOMER],
    delivered_at: timeOf(occasion),
    processing_time_ms: 1_250,
  }),
  'message.bounced': (occasion) => ({
    ...messageOf(occasion),
    bounce_type: 'Permanent',
    bounce_sub_type: 'NoEmail',
    bounced_recipients: [
      {
        email_address: CUSTOMER,
        status: '5.1.1',
        diagnostic_code: 'smtp; 550 5.1.1 Test event: no such user here',
      },
    ],
    bounced_at: timeOf(occasion),
  }),
  'message.complained': (occasion) => ({
    message_id: newId('message'),
    inbox_id: occasion.inboxId,
    complained_recipients: [CUSTOMER],
    feedback_type: 'abuse',
    complained_at: timeOf(occasion),
  }),
  'message.rejected': (occasion) => ({
    inbox_id: occasion.inboxId,
    from_address: AGENT,
    to_addresses: [CUSTOMER],
    subject: SUBJECT,
    rejection_reason: 'blocked_recipient',
    rejection_detail: 'Test event: the recipient is on a block list.',
    rejected_at: timeOf(occasion),
  }),
  'domain.verified': (occasion) => ({
    domain_id: newId('domain'),
    domain_name: 'mail.example.com',
    verification_status: 'verified',
    spf_status: 'verified',
    dkim_status: 'verified',
    dmarc_status: 'verified',
    verified_at: timeOf(occasion),
  }),
  'usage.warning': (occasion) => usageOf(occasion, 80),
  'usage.exceeded': (occasion) => usageOf(occasion, 100),
};

function messageOf({ inboxId }: Occasion) {
  return { message_id: newId('message'), thread_id: newId('thread'), inbox_id: inboxId };
}

function usageOf({ at }: Occasion, threshold: number): EventDataByType['usage.warning'] {
  const { start, end } = monthOf(at);
  return {
    counter: 'messages_sent',
    current: 10 * threshold,
    limit: 1_000,
    percentage: threshold,
    threshold,
    period_start: start.toISOString(),
    period_end: end.toISOString(),
  };
}

function timeOf({ at }: Occasion): string {
  return at.toISOString();
}
