import type { Transaction } from '../../platform/database/database.ts';
import type { classifyBounce } from '../delivery-reports/dsn.ts';
import type { EventService } from '../events/event.service.ts';
import type { EventDataByType, RejectionReason } from '../events/event-types.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import type { Message, Recipient } from '../messages/message.entity.ts';
import { countRefusedSend } from '../metrics/metric-deltas.ts';
import type { OutboundContent } from './outbound-content.ts';

/** The fields of a message that its events contain. */
type EventMessage = Pick<
  Message,
  | 'id'
  | 'organizationId'
  | 'environmentId'
  | 'inboxId'
  | 'threadId'
  | 'fromEmail'
  | 'subject'
  | 'rfcMessageId'
  | 'providerMessageId'
  | 'sentAt'
>;
export type EventRecipient = Pick<
  Recipient,
  'position' | 'field' | 'email' | 'statusCode' | 'diagnosticCode'
>;

type BounceKind = ReturnType<typeof classifyBounce>;

/** The changes made by one update. A recipient appears once for each kind of change. */
export interface OutcomeChanges {
  sent: EventRecipient[];
  delivered: EventRecipient[];
  bounced: { recipient: EventRecipient; bounceKind: BounceKind }[];
  complained: { recipient: EventRecipient; feedbackType: string }[];
  rejected: EventRecipient[];
  /** Why the gate rejected them; undefined if the relay did. */
  rejection?: { reason: RejectionReason; detail: string };
}

export function createEmptyChanges(): OutcomeChanges {
  return { sent: [], delivered: [], bounced: [], complained: [], rejected: [] };
}

/** A message after an update, with all of its recipients. */
export interface UpdatedMessage {
  message: EventMessage;
  recipients: readonly Pick<Recipient, 'status'>[];
}

/**
 * Records one event per kind of change, with the recipients concerned. `message.rejected` means that the message goes to no
 * recipient, so if others remain, refused recipients are reported as bounced.
 */
export async function recordOutcomeEvents(
  transaction: Transaction,
  events: EventService,
  { message, recipients }: UpdatedMessage,
  allChanges: OutcomeChanges,
  now: Date,
): Promise<void> {
  const changes = reachesAnyRecipient(recipients) ? reportRejectedAsBounced(allChanges) : allChanges;
  const emit = <Type extends keyof EventDataByType>(type: Type, data: EventDataByType[Type]) =>
    events.record(transaction, {
      organizationId: message.organizationId,
      environmentId: message.environmentId,
      inboxId: message.inboxId,
      type,
      data,
      aboutId: type === 'message.rejected' ? message.id : undefined,
    });
  const ids = { message_id: message.id, thread_id: message.threadId, inbox_id: message.inboxId };
  if (changes.sent.length > 0) await emit('message.sent', buildSentData(message, changes.sent, now));
  if (changes.rejected.length > 0) await emit('message.rejected', buildRejectedData(message, changes, now));
  if (changes.delivered.length > 0) {
    await emit('message.delivered', {
      ...ids,
      to_addresses: addresses(changes.delivered),
      delivered_at: now.toISOString(),
      processing_time_ms: Math.max(0, now.getTime() - (message.sentAt ?? now).getTime()),
    });
  }
  for (const group of Map.groupBy(
    changes.bounced,
    ({ bounceKind }) => `${bounceKind.type}/${bounceKind.subType}`,
  )) {
    await emit('message.bounced', { ...ids, ...buildBouncedData(group[1], now) });
  }
  for (const [feedbackType, group] of Map.groupBy(changes.complained, (entry) => entry.feedbackType)) {
    await emit('message.complained', {
      message_id: message.id,
      inbox_id: message.inboxId,
      complained_recipients: group.map(({ recipient }) => recipient.email),
      feedback_type: feedbackType,
      complained_at: now.toISOString(),
    });
  }
}

/** Whether the message was or may still be sent to some recipient. */
function reachesAnyRecipient(recipients: UpdatedMessage['recipients']): boolean {
  return recipients.some(({ status }) => status !== 'rejected' && status !== 'suppressed');
}

function reportRejectedAsBounced(changes: OutcomeChanges): OutcomeChanges {
  const bounced = changes.rejected.map((recipient) => ({
    recipient,
    bounceKind: { type: 'Transient', subType: 'General' } as const,
  }));
  return { ...changes, rejected: [], bounced: [...changes.bounced, ...bounced] };
}

function addresses(recipients: EventRecipient[]): string[] {
  return recipients.map(({ email }) => email);
}

/** The addresses in the field To. Empty if only Cc and Bcc recipients are concerned. */
function primaryAddresses(recipients: EventRecipient[]): string[] {
  return addresses(recipients.filter(({ field }) => field === 'to'));
}

function buildSentData(
  message: EventMessage,
  sent: EventRecipient[],
  now: Date,
): EventDataByType['message.sent'] {
  return {
    message_id: message.id,
    thread_id: message.threadId,
    inbox_id: message.inboxId,
    from_address: message.fromEmail,
    to_addresses: primaryAddresses(sent),
    subject: message.subject,
    provider_message_id: message.providerMessageId ?? message.rfcMessageId ?? message.id,
    sent_at: (message.sentAt ?? now).toISOString(),
  };
}

function buildRejectedData(
  message: EventMessage,
  { rejected, rejection }: OutcomeChanges,
  now: Date,
): EventDataByType['message.rejected'] {
  return {
    inbox_id: message.inboxId,
    from_address: message.fromEmail,
    to_addresses: primaryAddresses(rejected),
    subject: message.subject,
    // A relay refuses a message for its content or by policy. This is the closest of the specified reasons.
    rejection_reason: rejection?.reason ?? 'blocked_recipient',
    rejection_detail:
      rejection?.detail ??
      `The relay refused the message: ${rejected[0]?.diagnosticCode ?? 'no reason given'}`,
    rejected_at: now.toISOString(),
  };
}

function buildBouncedData(bounced: OutcomeChanges['bounced'], now: Date) {
  const [first] = bounced;
  return {
    bounce_type: first?.bounceKind.type ?? 'Permanent',
    bounce_sub_type: first?.bounceKind.subType ?? 'General',
    bounced_recipients: bounced.map(({ recipient }) => ({
      email_address: recipient.email,
      status: recipient.statusCode ?? '',
      diagnostic_code: recipient.diagnosticCode ?? '',
    })),
    bounced_at: now.toISOString(),
  };
}

export interface RefusedSend {
  inbox: Inbox;
  /** The address that the message would have left from. */
  sender: string;
  content: Pick<OutboundContent, 'to' | 'subject'>;
  draftId?: string | undefined;
  refusal: { reason: RejectionReason; detail: string };
}

/** Records the event and the metric of a refused send that created no message. */
export async function recordRefusedSend(
  transaction: Transaction,
  events: EventService,
  { inbox, sender, content, draftId, refusal }: RefusedSend,
): Promise<void> {
  const now = new Date();
  await countRefusedSend(transaction.db, inbox, now);
  await events.record(transaction, {
    organizationId: inbox.organizationId,
    environmentId: inbox.environmentId,
    inboxId: inbox.id,
    type: 'message.rejected',
    aboutId: draftId,
    data: {
      inbox_id: inbox.id,
      from_address: sender,
      to_addresses: content.to.map(({ email }) => email),
      subject: content.subject ?? '',
      rejection_reason: refusal.reason,
      rejection_detail: refusal.detail,
      rejected_at: now.toISOString(),
    },
  });
}
