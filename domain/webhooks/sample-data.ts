import { newId } from '../../platform/ids.ts';
import type { EventDataByType, EventType } from '../events/event-types.ts';
import { monthOf } from '../usage/periods.ts';

interface SampleContext {
  inboxId: string;
  time: Date;
}

/** Builds the data of a test event. The ids refer to nothing, and the addresses use reserved domains (RFC 2606). */
export function buildSampleData<Type extends EventType>(
  type: Type,
  context: SampleContext,
): EventDataByType[Type] {
  return SAMPLES[type](context);
}

const AGENT = 'agent@example.com';
const CUSTOMER = 'customer@example.net';
const SUBJECT = 'Test event: your order';

const SAMPLES: { [Type in EventType]: (context: SampleContext) => EventDataByType[Type] } = {
  'message.received': (context) => ({
    ...messageFields(context),
    from_address: CUSTOMER,
    to_addresses: [AGENT],
    subject: SUBJECT,
    extracted_text: 'This is a test event. Where is my order?',
    has_attachments: false,
    received_at: timestampOf(context),
  }),
  'message.sent': (context) => ({
    ...messageFields(context),
    from_address: AGENT,
    to_addresses: [CUSTOMER],
    subject: SUBJECT,
    provider_message_id: 'test-event',
    sent_at: timestampOf(context),
  }),
  'message.delivered': (context) => ({
    ...messageFields(context),
    to_addresses: [CUSTOMER],
    delivered_at: timestampOf(context),
    processing_time_ms: 1_250,
  }),
  'message.bounced': (context) => ({
    ...messageFields(context),
    bounce_type: 'Permanent',
    bounce_sub_type: 'NoEmail',
    bounced_recipients: [
      {
        email_address: CUSTOMER,
        status: '5.1.1',
        diagnostic_code: 'smtp; 550 5.1.1 Test event: no such user here',
      },
    ],
    bounced_at: timestampOf(context),
  }),
  'message.complained': (context) => ({
    message_id: newId('message'),
    inbox_id: context.inboxId,
    complained_recipients: [CUSTOMER],
    feedback_type: 'abuse',
    complained_at: timestampOf(context),
  }),
  'message.rejected': (context) => ({
    inbox_id: context.inboxId,
    from_address: AGENT,
    to_addresses: [CUSTOMER],
    subject: SUBJECT,
    rejection_reason: 'blocked_recipient',
    rejection_detail: 'Test event: the recipient is on a block list.',
    rejected_at: timestampOf(context),
  }),
  'draft.pending_approval': (context) => ({
    ...draftFields(context),
    from_address: AGENT,
    requested_at: timestampOf(context),
    expires_at: timestampOf(context),
  }),
  'draft.approved': (context) => ({
    ...draftFields(context),
    message_id: newId('message'),
    send_at: null,
    note: null,
    approved_by: newId('user'),
    approved_at: timestampOf(context),
  }),
  'draft.rejected': (context) => ({
    ...draftFields(context),
    decision: 'rejected',
    note: 'Test event: not to this customer.',
    rejected_by: newId('user'),
    rejected_at: timestampOf(context),
  }),
  'domain.verified': (context) => ({
    domain_id: newId('domain'),
    domain_name: 'mail.example.com',
    verification_status: 'verified',
    spf_status: 'verified',
    dkim_status: 'verified',
    dmarc_status: 'verified',
    verified_at: timestampOf(context),
  }),
  'usage.warning': (context) => usageFields(context, 80),
  'usage.exceeded': (context) => usageFields(context, 100),
};

function draftFields({ inboxId }: SampleContext) {
  return {
    draft_id: newId('draft'),
    inbox_id: inboxId,
    to_addresses: [CUSTOMER],
    subject: SUBJECT,
    version: 1,
  };
}

function messageFields({ inboxId }: SampleContext) {
  return { message_id: newId('message'), thread_id: newId('thread'), inbox_id: inboxId };
}

function usageFields({ time }: SampleContext, threshold: number): EventDataByType['usage.warning'] {
  const { start, end } = monthOf(time);
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

function timestampOf({ time }: SampleContext): string {
  return time.toISOString();
}
