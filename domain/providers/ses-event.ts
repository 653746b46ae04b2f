import type { DeliveryOutcome } from '../delivery-reports/delivery-outcome.ts';
import { type Fields, listOf, objectOf, parseJson, textOf, timeOf } from './json-fields.ts';

/** What SES tells of one mail: of each recipient it names, what became of it. */
export interface SesEvent {
  sesMessageId: string;
  sentAt: Date | null;
  outcomes: { address: string; outcome: Omit<DeliveryOutcome, 'position'> }[];
}

interface Told {
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
export function readSesEvent(text: string): SesEvent | null {
  const event = objectOf(parseJson(text));
  const mail = objectOf(event.mail);
  const sesMessageId = textOf(mail.messageId);
  if (sesMessageId === null) return null;
  const type = textOf(event.eventType) ?? textOf(event.notificationType);
  const outcomes = outcomesOf(type, event, mail).filter(({ address }) => address !== '');
  if (outcomes.length === 0) return null;
  return { sesMessageId, sentAt: timeOf(mail.timestamp), outcomes };
}

function outcomesOf(type: string | null, event: Fields, mail: Fields): SesEvent['outcomes'] {
  switch (type) {
    case 'Delivery': {
      const delivery = objectOf(event.delivery);
      const told = {
        kind: 'delivered' as const,
        statusCode: '2.0.0',
        diagnosticCode: textOf(delivery.smtpResponse),
      };
      return listOf(delivery.recipients, MAX_RECIPIENTS).map((address) => ({
        address: String(address),
        outcome: told,
      }));
    }
    case 'Bounce':
      return bounces(objectOf(event.bounce));
    case 'Complaint':
      return complaints(objectOf(event.complaint));
    case 'Reject': {
      const reason = textOf(objectOf(event.reject).reason) ?? 'no reason given';
      const told = {
        kind: 'bounced' as const,
        statusCode: '5.7.1',
        diagnosticCode: `SES rejected the mail: ${reason}`,
      };
      return listOf(mail.destination, MAX_RECIPIENTS).map((address) => ({
        address: String(address),
        outcome: told,
      }));
    }
    case 'DeliveryDelay':
      return recipientsOf(objectOf(event.deliveryDelay).delayedRecipients).map((told) => ({
        address: textOf(told.emailAddress) ?? '',
        outcome: {
          kind: 'delayed',
          statusCode: textOf(told.status),
          diagnosticCode: textOf(told.diagnosticCode),
        },
      }));
    default:
      return [];
  }
}

/** SES classifies itself: its word on permanence and a bad or suppressed address goes before the codes. */
function bounces(bounce: Fields): SesEvent['outcomes'] {
  const transient = bounce.bounceType === 'Transient';
  const subType = textOf(bounce.bounceSubType) ?? 'General';
  return recipientsOf(bounce.bouncedRecipients).map((told) => {
    const status = textOf(told.status);
    const diagnostic = textOf(told.diagnosticCode);
    const suppressed = /Suppress/i.test(subType);
    return {
      address: textOf(told.emailAddress) ?? '',
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

function complaints(complaint: Fields): SesEvent['outcomes'] {
  const feedbackType = textOf(complaint.complaintFeedbackType) ?? 'abuse';
  // "Not spam" takes a complaint back; it is none.
  if (feedbackType === 'not-spam') return [];
  return recipientsOf(complaint.complainedRecipients).map((told) => ({
    address: textOf(told.emailAddress) ?? '',
    outcome: {
      kind: 'complained',
      statusCode: null,
      diagnosticCode: null,
      feedbackType: feedbackType.slice(0, 64),
    },
  }));
}

function recipientsOf(value: unknown): Told[] {
  return listOf(value, MAX_RECIPIENTS).map(objectOf);
}
