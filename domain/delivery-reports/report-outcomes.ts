import type { Readable } from 'node:stream';
import { storableText } from '../../platform/database/storable.ts';
import { type ReportAction, readReportBytes } from './dsn.ts';
import type { FeedbackReport } from './feedback-report.ts';
import { readMailReport } from './read-report.ts';

/** The outcome for one recipient, from a report to a signed return path, a provider, or the simulator. */
export interface DeliveryOutcome {
  position: number;
  /** `delayed` is informational and changes no state (RFC 3464 `Action: delayed`). */
  kind: 'delivered' | 'bounced' | 'complained' | 'delayed';
  /** Enhanced status code (RFC 3463); null if the report has none. */
  statusCode: string | null;
  diagnosticCode: string | null;
  /** Feedback-Type (RFC 5965), only for complaints. */
  feedbackType?: string;
}

const MAX_DIAGNOSTIC_CHARACTERS = 1_000;
/** Feedback types other than complaints: a withdrawn complaint, and authentication reports (RFC 6430, RFC 6591). */
const NON_COMPLAINT_TYPES = new Set(['not-spam', 'auth-failure', 'dmarc']);

/**
 * Precedence of actions if an alias expanded to several mailboxes: a failure for any mailbox counts, as it does in a
 * separate report.
 */
const ACTION_PRECEDENCE: Record<ReportAction, number> = {
  failed: 4,
  delivered: 3,
  expanded: 2,
  relayed: 1,
  delayed: 0,
};

/**
 * Reads a delivery report or a complaint that was sent to a signed return path, in any format. The return path
 * identifies the recipient, regardless of the recipient that the report names.
 *
 * @returns null if the message is neither (auto-replies are also sent to return paths), or reports on no recipient.
 */
export async function readReportOutcomes(
  raw: Readable,
  { position, relayedIsDelivered }: { position: number; relayedIsDelivered: boolean },
): Promise<DeliveryOutcome[] | null> {
  const { feedback, recipients } = readMailReport(await readReportBytes(raw));
  if (feedback) return toComplaint(feedback, position);
  const [reported] = recipients.toSorted((a, b) => ACTION_PRECEDENCE[b.action] - ACTION_PRECEDENCE[a.action]);
  if (!reported) return null;
  const statusCode = storableText(reported.status, 32);
  const diagnosticCode =
    reported.diagnosticCode === null
      ? null
      : storableText(reported.diagnosticCode, MAX_DIAGNOSTIC_CHARACTERS);
  switch (reported.action) {
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

/** Returns no outcome for other feedback types. */
function toComplaint({ feedbackType, userAgent }: FeedbackReport, position: number): DeliveryOutcome[] {
  if (NON_COMPLAINT_TYPES.has(feedbackType)) return [];
  const description = `${feedbackType} report${userAgent ? ` by ${userAgent}` : ''}`;
  const diagnosticCode = storableText(description, MAX_DIAGNOSTIC_CHARACTERS);
  return [{ position, kind: 'complained', statusCode: null, diagnosticCode, feedbackType }];
}
