import type { DeliveryOutcome } from '../delivery-reports/report-outcomes.ts';
import { type JsonObject, parseJson, toDate, toList, toObject, toText } from './json-fields.ts';

/** Outcomes that SES reports for the recipients of one message. */
export interface SesEvent {
  sesMessageId: string;
  sentAt: Date | null;
  outcomes: { address: string; outcome: Omit<DeliveryOutcome, 'position'> }[];
}

interface SesRecipient {
  emailAddress?: unknown;
  status?: unknown;
  diagnosticCode?: unknown;
}

const MAX_RECIPIENTS = 100;

/**
 * Parses a notification (`notificationType`) or a published event (`eventType`) from SES.
 *
 * @returns null if it reports no delivery outcome (sends, opens, clicks) or is invalid.
 */
export function parseSesEvent(text: string): SesEvent | null {
  const event = toObject(parseJson(text));
  const mail = toObject(event.mail);
  const sesMessageId = toText(mail.messageId);
  if (sesMessageId === null) return null;
  const type = toText(event.eventType) ?? toText(event.notificationType);
  const outcomes = toOutcomes(type, event, mail).filter(({ address }) => address !== '');
  if (outcomes.length === 0) return null;
  return { sesMessageId, sentAt: toDate(mail.timestamp), outcomes };
}

function toOutcomes(type: string | null, event: JsonObject, mail: JsonObject): SesEvent['outcomes'] {
  switch (type) {
    case 'Delivery': {
      const delivery = toObject(event.delivery);
      const outcome = {
        kind: 'delivered' as const,
        statusCode: '2.0.0',
        diagnosticCode: toText(delivery.smtpResponse),
      };
      return toList(delivery.recipients, MAX_RECIPIENTS).map((address) => ({
        address: String(address),
        outcome,
      }));
    }
    case 'Bounce':
      return toBounces(toObject(event.bounce));
    case 'Complaint':
      return toComplaints(toObject(event.complaint));
    case 'Reject': {
      const reason = toText(toObject(event.reject).reason) ?? 'no reason given';
      const outcome = {
        kind: 'bounced' as const,
        statusCode: '5.7.1',
        diagnosticCode: `SES rejected the message: ${reason}`,
      };
      return toList(mail.destination, MAX_RECIPIENTS).map((address) => ({
        address: String(address),
        outcome,
      }));
    }
    case 'DeliveryDelay':
      return toRecipients(toObject(event.deliveryDelay).delayedRecipients).map((recipient) => ({
        address: toText(recipient.emailAddress) ?? '',
        outcome: {
          kind: 'delayed',
          statusCode: toText(recipient.status),
          diagnosticCode: toText(recipient.diagnosticCode),
        },
      }));
    default:
      return [];
  }
}

/** SES classifies bounces: its type and sub-type take precedence over the status code. */
function toBounces(bounce: JsonObject): SesEvent['outcomes'] {
  const transient = bounce.bounceType === 'Transient';
  const subType = toText(bounce.bounceSubType) ?? 'General';
  return toRecipients(bounce.bouncedRecipients).map((recipient) => {
    const status = toText(recipient.status);
    const diagnostic = toText(recipient.diagnosticCode);
    const suppressed = /Suppress/i.test(subType);
    return {
      address: toText(recipient.emailAddress) ?? '',
      outcome: {
        kind: 'bounced',
        statusCode: transient
          ? (status?.replace(/^[25]/, '4') ?? '4.0.0')
          : (status ?? (subType === 'NoEmail' || suppressed ? '5.1.1' : '5.0.0')),
        diagnosticCode: suppressed ? `On the SES suppression list. ${diagnostic ?? ''}`.trim() : diagnostic,
      },
    };
  });
}

function toComplaints(complaint: JsonObject): SesEvent['outcomes'] {
  const feedbackType = toText(complaint.complaintFeedbackType) ?? 'abuse';
  // `not-spam` withdraws a complaint.
  if (feedbackType === 'not-spam') return [];
  return toRecipients(complaint.complainedRecipients).map((recipient) => ({
    address: toText(recipient.emailAddress) ?? '',
    outcome: {
      kind: 'complained',
      statusCode: null,
      diagnosticCode: null,
      feedbackType: feedbackType.slice(0, 64),
    },
  }));
}

function toRecipients(value: unknown): SesRecipient[] {
  return toList(value, MAX_RECIPIENTS).map(toObject);
}
