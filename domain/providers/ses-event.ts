import type { DeliveryOutcome } from '../delivery-reports/delivery-outcome.ts';
import { type JsonObject, parseJson, toDate, toList, toObject, toText } from './json-fields.ts';

/** What SES tells of one mail: of each recipient it names, what became of it. */
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
 * Reads a notification (`notificationType`) or a published event (`eventType`) of SES.
 *
 * @returns null where it tells nothing of a delivery: sends, opens, clicks, or no JSON.
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
      const told = {
        kind: 'delivered' as const,
        statusCode: '2.0.0',
        diagnosticCode: toText(delivery.smtpResponse),
      };
      return toList(delivery.recipients, MAX_RECIPIENTS).map((address) => ({
        address: String(address),
        outcome: told,
      }));
    }
    case 'Bounce':
      return toBounces(toObject(event.bounce));
    case 'Complaint':
      return toComplaints(toObject(event.complaint));
    case 'Reject': {
      const reason = toText(toObject(event.reject).reason) ?? 'no reason given';
      const told = {
        kind: 'bounced' as const,
        statusCode: '5.7.1',
        diagnosticCode: `SES rejected the mail: ${reason}`,
      };
      return toList(mail.destination, MAX_RECIPIENTS).map((address) => ({
        address: String(address),
        outcome: told,
      }));
    }
    case 'DeliveryDelay':
      return toRecipients(toObject(event.deliveryDelay).delayedRecipients).map((told) => ({
        address: toText(told.emailAddress) ?? '',
        outcome: {
          kind: 'delayed',
          statusCode: toText(told.status),
          diagnosticCode: toText(told.diagnosticCode),
        },
      }));
    default:
      return [];
  }
}

/** SES classifies itself: its word on permanence and a bad or suppressed address goes before the codes. */
function toBounces(bounce: JsonObject): SesEvent['outcomes'] {
  const transient = bounce.bounceType === 'Transient';
  const subType = toText(bounce.bounceSubType) ?? 'General';
  return toRecipients(bounce.bouncedRecipients).map((told) => {
    const status = toText(told.status);
    const diagnostic = toText(told.diagnosticCode);
    const suppressed = /Suppress/i.test(subType);
    return {
      address: toText(told.emailAddress) ?? '',
      outcome: {
        kind: 'bounced',
        statusCode: transient
          ? (status?.replace(/^[25]/, '4') ?? '4.0.0')
          : (status ?? (subType === 'NoEmail' || suppressed ? '5.1.1' : '5.0.0')),
        diagnosticCode: suppressed
          ? `On the suppression list of SES. ${diagnostic ?? ''}`.trim()
          : diagnostic,
      },
    };
  });
}

function toComplaints(complaint: JsonObject): SesEvent['outcomes'] {
  const feedbackType = toText(complaint.complaintFeedbackType) ?? 'abuse';
  // "Not spam" takes a complaint back; it is none.
  if (feedbackType === 'not-spam') return [];
  return toRecipients(complaint.complainedRecipients).map((told) => ({
    address: toText(told.emailAddress) ?? '',
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
