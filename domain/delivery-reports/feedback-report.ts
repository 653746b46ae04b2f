import { storableTime } from '../../platform/database/storable.ts';
import { limitHeaderBytes } from '../mime/header-limit.ts';
import { findAddress } from './addresses-in-text.ts';
import { type LeafPart, parseFields, parseHeaderFields, parseLeafParts } from './leaf-parts.ts';

/** A complaint report from a mailbox provider (RFC 5965). */
export interface FeedbackReport {
  /** Feedback-Type (RFC 5965 section 3.1) in lower case: `abuse`, `fraud`, `not-spam`, `opt-out`, …; `abuse` if missing. */
  feedbackType: string;
  /** The program that generated the report; null if missing, as in reports that are not ARF. */
  userAgent: string | null;
  /** Recipients of the reported message. Many providers redact them. */
  originalRecipients: string[];
  /** Envelope sender of the reported message (our VERP address if sent over SMTP); null if missing. */
  originalMailFrom: string | null;
  sourceIp: string | null;
  arrivalDate: Date | null;
  /** Header fields of the reported message: lower-case names, the first value of each. May contain our report token. */
  reportedFields: Map<string, string>;
}

const REPORTED_TYPES = new Set([
  'message/rfc822',
  'text/rfc822-headers',
  'message/rfc822-headers',
  'message/global',
]);
const MAX_REPORT_BYTES = 4 * 1024 * 1024;
const MAX_RECIPIENTS = 100;
const MAX_VALUE_CHARACTERS = 1_000;
/** Repetitions are bounded: addresses of strangers may repeat the start of one. */
const COMPLAINT_SENDER =
  /\b(?:staff@(?:hotmail|outlook)\.|scomp@aol\.|feedback@arf\.|fbl[\w.-]{0,64}@|feedbackloop@|complaints?[\w.-]{0,64}@)/i;
const COMPLAINT_SUBJECT = /\b(?:complaint|abuse|spam|feedback|client tos|unsolicited)\b/i;

/**
 * Parses a feedback report: ARF (RFC 5965), or the message of a provider that attaches only the reported message.
 *
 * @returns null for any other message, including malformed ones. Never throws.
 */
export function parseFeedbackReport(raw: Buffer): FeedbackReport | null {
  const { message: bytes } = limitHeaderBytes(raw.subarray(0, MAX_REPORT_BYTES));
  return findFeedbackReport(parseHeaderFields(bytes), parseLeafParts(bytes));
}

/** Finds a feedback report in the parts of a message. */
export function findFeedbackReport(fields: Map<string, string>, leaves: LeafPart[]): FeedbackReport | null {
  const reportedFields = readReportedFields(leaves);
  const report = leaves.find(({ contentType }) => contentType === 'message/feedback-report');
  if (report) return buildFeedbackReport(report.content, reportedFields);
  // The machine-readable part lost its type in transit, but not its fields.
  const bare = leaves.find(
    ({ contentType, content }) =>
      contentType === 'text/plain' && /^feedback-type:/im.test(content) && /^user-agent:/im.test(content),
  );
  if (bare) return buildFeedbackReport(bare.content, reportedFields);
  return isComplaintWithoutReport(fields, reportedFields) ? buildFeedbackReport('', reportedFields) : null;
}

/** Outlook.com (JMRP) and older AOL and Yahoo loops send the reported message with a sentence, without ARF. */
function isComplaintWithoutReport(fields: Map<string, string>, reportedFields: Map<string, string>): boolean {
  if (reportedFields.size === 0) return false;
  if (reportedFields.has('x-hmxmroriginalrecipient')) return true;
  const read = (name: string) => (fields.get(name) ?? '').slice(0, MAX_VALUE_CHARACTERS);
  return COMPLAINT_SENDER.test(read('from')) && COMPLAINT_SUBJECT.test(read('subject'));
}

function buildFeedbackReport(content: string, reportedFields: Map<string, string>): FeedbackReport {
  const block = content.replace(/\n{2,}/g, '\n');
  const fields = parseFields(block);
  const values = [
    ...getFieldValues(block, 'original-rcpt-to'),
    ...getFieldValues(block, 'removal-recipient'),
    ...['x-hmxmroriginalrecipient', 'x-original-to', 'delivered-to'].map(
      (name) => reportedFields.get(name) ?? '',
    ),
  ];
  const recipients = new Set(values.flatMap((value) => findAddress(value) ?? []).map((address) => address));
  const mailFrom = fields.get('original-mail-from') ?? reportedFields.get('return-path');
  return {
    feedbackType: (
      /^[a-z][a-z-]{0,63}/i.exec(fields.get('feedback-type') ?? '')?.[0] ?? 'abuse'
    ).toLowerCase(),
    userAgent: fields.get('user-agent')?.slice(0, MAX_VALUE_CHARACTERS) || null,
    originalRecipients: [...recipients].slice(0, MAX_RECIPIENTS),
    originalMailFrom: findAddress(mailFrom ?? ''),
    sourceIp: /^[0-9a-f.:]{2,45}$/i.exec(fields.get('source-ip') ?? '')?.[0] ?? null,
    arrivalDate: parseDate(fields.get('arrival-date') ?? fields.get('received-date')),
    reportedFields,
  };
}

function readReportedFields(leaves: LeafPart[]): Map<string, string> {
  const reported = leaves.find(({ contentType }) => REPORTED_TYPES.has(contentType));
  return reported ? parseHeaderFields(Buffer.from(reported.content, 'latin1')) : new Map();
}

/** Returns the values of a field that may occur more than once (RFC 5965 section 3.2). */
function getFieldValues(block: string, name: string): string[] {
  return block
    .replace(/\n[ \t]+/g, ' ')
    .split('\n')
    .filter((line) => line.slice(0, name.length + 1).toLowerCase() === `${name}:`)
    .slice(0, MAX_RECIPIENTS)
    .map((line) => line.slice(name.length + 1));
}

function parseDate(field: string | undefined): Date | null {
  return storableTime(Date.parse(field?.slice(0, 100) ?? ''));
}
