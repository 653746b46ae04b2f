import type { Readable } from 'node:stream';
import { storableText } from '../../platform/database/storable.ts';
import type { DeliveryOutcome } from './delivery-outcome.ts';
import { type ReportAction, readReportBytes } from './dsn.ts';
import type { FeedbackReport } from './feedback-report.ts';
import { readMailReport } from './read-report.ts';

const MAX_DIAGNOSTIC_CHARACTERS = 1_000;
/** Feedback that is no complaint: a reader who takes one back, and reports of authentication (RFC 6430, RFC 6591). */
const NON_COMPLAINT_TYPES = new Set(['not-spam', 'auth-failure', 'dmarc']);

/** What counts where an alias led to several mailboxes: a failure anywhere, as it would in a report of its own. */
const ACTION_PRECEDENCE: Record<ReportAction, number> = {
  failed: 4,
  delivered: 3,
  expanded: 2,
  relayed: 1,
  delayed: 0,
};

/**
 * Reads a delivery report or a complaint that came to a signed return path, in whatever form its server writes them. The path names
 * the one recipient it may tell of; whatever else the report claims is not believed.
 *
 * @returns null where the mail is neither (an absent reader's machine answers to return paths too), or
 * tells nothing of a recipient.
 */
export async function readReportOutcomes(
  raw: Readable,
  { position, relayedIsDelivered }: { position: number; relayedIsDelivered: boolean },
): Promise<DeliveryOutcome[] | null> {
  const { feedback, recipients } = readMailReport(await readReportBytes(raw));
  if (feedback) return toComplaint(feedback, position);
  const [told] = recipients.toSorted((a, b) => ACTION_PRECEDENCE[b.action] - ACTION_PRECEDENCE[a.action]);
  if (!told) return null;
  const statusCode = storableText(told.status, 32);
  const diagnosticCode =
    told.diagnosticCode === null ? null : storableText(told.diagnosticCode, MAX_DIAGNOSTIC_CHARACTERS);
  switch (told.action) {
    case 'delivered':
    case 'expanded':
      return [{ position, kind: 'delivered', statusCode, diagnosticCode }];
    case 'relayed':
      return relayedIsDelivered ? [{ position, kind: 'delivered', statusCode, diagnosticCode }] : [];
    case 'failed':
      return [{ position, kind: 'bounced', statusCode, diagnosticCode }];
    case 'delayed':
      return [{ position, kind: 'delayed', statusCode, diagnosticCode }];
  }
}

/** Nothing to fold: it is feedback of another kind. */
function toComplaint({ feedbackType, userAgent }: FeedbackReport, position: number): DeliveryOutcome[] {
  if (NON_COMPLAINT_TYPES.has(feedbackType)) return [];
  const words = `${feedbackType} report${userAgent ? ` by ${userAgent}` : ''}`;
  const diagnosticCode = storableText(words, MAX_DIAGNOSTIC_CHARACTERS);
  return [{ position, kind: 'complained', statusCode: null, diagnosticCode, feedbackType }];
}
