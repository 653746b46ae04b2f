import { once } from '../../platform/once.ts';
import { limitHeaderBytes } from '../mime/header-limit.ts';
import { findAddress } from './addresses-in-text.ts';
import {
  isAutoReply,
  isBounceNotice,
  isDelayNotice,
  isSuccessNotice,
  type Notice,
  parseNotice,
} from './bounce-notice.ts';
import { containsReason, findEnhancedCode, findReason, findReplyCode } from './bounce-phrases.ts';
import { findRecipients, findReturnedRecipient } from './bounce-recipients.ts';
import {
  type BounceClassification,
  classifyBounce,
  findDeliveryReport,
  parseStatusFields,
  type ReportAction,
  type ReportedRecipient,
  resolveStatus,
} from './dsn.ts';
import { type FeedbackReport, findFeedbackReport } from './feedback-report.ts';
import { type LeafPart, parseFields, parseHeaderFields, parseLeafParts } from './leaf-parts.ts';

/** The kind of report that a message is. `mail` is not a report. */
export type MailKind = 'bounce' | 'delay' | 'delivered' | 'complaint' | 'auto_reply' | 'mail';

/** The report of a message about one recipient. */
export interface RecipientReport {
  /** Null if the message does not name a recipient. */
  address: string | null;
  action: ReportAction;
  /** `Transient` for delays and temporary failures; null for deliveries. */
  permanence: BounceClassification['type'] | null;
  subType: BounceClassification['subType'] | null;
  /** Enhanced status code (RFC 3463), reported or derived from the text. */
  status: string;
  /** At most 1,000 characters; null if there is none. */
  diagnosticCode: string | null;
  /** Final-Recipient of the report; null if it has no such field. */
  finalRecipient: string | null;
  originalRecipient: string | null;
}

export interface MailReport {
  kind: MailKind;
  /** Empty unless the message is a bounce, a delay or a delivery. */
  recipients: RecipientReport[];
  /** Only for complaints. */
  feedback: FeedbackReport | null;
}

const MAX_DIAGNOSTIC_CHARACTERS = 1_000;
const MAX_REPORT_BYTES = 4 * 1024 * 1024;

/**
 * Determines what a message reports about earlier messages, from its machine-readable part (RFC 3464, RFC 5965), else
 * from its text.
 *
 * @param raw the whole message, of which the first 4 MiB are read.
 * @returns `mail` for anything that is not a report, including malformed messages. Never throws.
 */
export function readMailReport(raw: Buffer): MailReport {
  const { message: bytes } = limitHeaderBytes(raw.subarray(0, MAX_REPORT_BYTES));
  const fields = parseHeaderFields(bytes);
  const leaves = parseLeafParts(bytes);
  const feedback = findFeedbackReport(fields, leaves);
  if (feedback) return { kind: 'complaint', recipients: [], feedback };
  const notice = parseNotice(fields, leaves);
  const reported = findDeliveryReport(leaves)?.recipients ?? findUntypedReport(notice, leaves);
  if (reported.length > 0)
    return buildMailReport(
      reported.map((recipient) => completeFromNotice(recipient, notice, reported.length === 1)),
    );
  const rejection = findRejectionByFilter(fields, leaves, notice.text);
  if (rejection) return buildMailReport([readRejection(rejection.recipient, notice)]);
  if (isAutoReply(notice)) return { kind: 'auto_reply', recipients: [], feedback: null };
  if (isBounceNotice(notice)) return buildMailReport(parseNoticeText(notice));
  return { kind: 'mail', recipients: [], feedback: null };
}

interface RejectedByFilter {
  /** Null if the notification names none. */
  recipient: string | null;
}

const DISPOSITION_TYPES = /^(?:message\/(?:global-)?disposition-notification)$/;
/** RFC 3798 section 3.2.6: the types `denied` and `failed`, and the modifiers of a failure. */
const FAILED = /;\s*(?:denied|failed)\b|\/\s*(?:error|failure|failed|denied)\b/i;
const DELETED = /;\s*deleted\b/i;
/** Mail programs also send `deleted` notifications for messages that their user deleted without reading. */
const REJECTED =
  /\(rejected\)|\b(?:rejected|refused|returned|undeliverable|not (?:be )?(?:delivered|accepted))\b|abgelehnt|zurückgewiesen|rejeté|refusé|rechazad|rejeitad|rifiutat|respint|geweigerd|avvisa|odrzucon|отклонен|拒否|拒绝|拒絕/iu;
const MAX_SEARCHED_CHARACTERS = 2_000;

/**
 * Recognizes a disposition notification that reports a rejection: with Sieve's `reject` (RFC 5429), mail systems accept
 * a message and then return it as "deleted". Any other notification is a receipt.
 */
export function findRejectionByFilter(
  fields: Map<string, string>,
  leaves: LeafPart[],
  text: string,
): RejectedByFilter | null {
  const part = leaves.find(({ contentType }) => DISPOSITION_TYPES.test(contentType));
  if (!part) return null;
  const report = parseFields(part.content.replace(/\n{2,}/g, '\n'));
  const disposition = (report.get('disposition') ?? '').slice(0, MAX_SEARCHED_CHARACTERS);
  const said = [fields.get('auto-submitted') ?? '', fields.get('subject') ?? '', text]
    .map((value) => value.slice(0, MAX_SEARCHED_CHARACTERS))
    .join('\n');
  if (!FAILED.test(disposition) && !(DELETED.test(disposition) && REJECTED.test(said))) return null;
  return {
    recipient:
      findAddress(report.get('final-recipient') ?? '') ?? findAddress(report.get('original-recipient') ?? ''),
  };
}

/** A rejection by a filter of the recipient is a refusal (RFC 5429 section 2.1), unless its text gives another reason. */
function readRejection(recipient: string | null, notice: Notice): RecipientReport {
  const address = recipient ?? findRecipients(notice)[0]?.address ?? null;
  const diagnostic = joinLines(notice.text.split('\n')) || null;
  const isExplained = containsReason(notice.text);
  return {
    ...classifyRecipient(address, 'failed', isExplained ? null : '5.7.1', diagnostic),
    finalRecipient: recipient,
    originalRecipient: null,
  };
}

/** Finds status fields in a part without the report type. Trusted only if the message looks like a bounce. */
function findUntypedReport(notice: Notice, leaves: LeafPart[]): ReportedRecipient[] {
  const part = leaves.find(({ content }) => /^final-recipient[ \t]*:/im.test(content));
  if (!part || !isBounceNotice(notice)) return [];
  const at = /^(?:reporting-mta|final-recipient|original-recipient)[ \t]*:/im.exec(part.content)?.index ?? 0;
  return parseStatusFields(part.content.slice(at)).recipients.filter(
    ({ finalRecipient, originalRecipient }) => finalRecipient !== null || originalRecipient !== null,
  );
}

/** Completes missing fields from the text of the notice. */
function completeFromNotice(
  reported: ReportedRecipient,
  notice: Notice,
  isOnlyRecipient: boolean,
): RecipientReport {
  const named = isOnlyRecipient && needsNoticeText(reported) ? findRecipients(notice) : [];
  const address =
    (isQualified(reported.finalRecipient) ? reported.finalRecipient : reported.originalRecipient) ??
    reported.finalRecipient ??
    named[0]?.address ??
    findReturnedRecipient(notice);
  const text =
    named.find((one) => one.address?.toLowerCase() === address?.toLowerCase())?.detail ?? named[0]?.detail;
  const diagnosticCode = reported.diagnosticCode ?? (text ? extractDiagnostic(text) : null);
  const { finalRecipient, originalRecipient } = reported;
  return {
    ...classifyRecipient(address, reported.action, reported.status, diagnosticCode),
    finalRecipient,
    originalRecipient,
  };
}

/** Excludes internal host names such as `anna@mailstore`, which the sender never used. */
function isQualified(address: string | null): boolean {
  return (
    address !== null && /@[^@]*\.(?!(?:local|localdomain|internal|lan)$)[^.@]+$/i.test(address.slice(-320))
  );
}

function needsNoticeText({
  action,
  status,
  diagnosticCode,
  finalRecipient,
  originalRecipient,
}: ReportedRecipient): boolean {
  if (finalRecipient === null && originalRecipient === null) return true;
  return action === 'failed' && diagnosticCode === null && (status === null || status.endsWith('.0.0'));
}

function parseNoticeText(notice: Notice): RecipientReport[] {
  const action: ReportAction = isSuccessNotice(notice)
    ? 'delivered'
    : isDelayNotice(notice)
      ? 'delayed'
      : 'failed';
  // Searched once, not once per recipient.
  const ofNotice = once(() => extractDiagnostic(notice.text));
  return findRecipients(notice).map(({ address, detail }) => {
    const diagnostic = containsReason(detail) ? extractDiagnostic(detail) : ofNotice();
    const unnamed = { finalRecipient: null, originalRecipient: null };
    return { ...classifyRecipient(address, action, null, diagnostic), ...unnamed };
  });
}

/**
 * Returns the text starting at the first line with a code. If that is less specific than the whole text, or there is no
 * code, returns the text starting at the first line with a reason.
 */
function extractDiagnostic(text: string): string | null {
  const lines = text.split('\n').map((line) => line.trim());
  const lineWithCode = lines.findIndex(
    (line) => findEnhancedCode(line) !== null || findReplyCode(line) !== null,
  );
  if (lineWithCode !== -1) {
    const diagnostic = joinLines(lines.slice(lineWithCode));
    const status = resolveStatus(null, diagnostic);
    if (!isGenericStatus(status) || !findReason(joinLines(lines))) return diagnostic;
  }
  // A reason may wrap onto the next line.
  const lineWithReason = lines.findIndex((line, at) => findReason(`${line} ${lines[at + 1] ?? ''}`) !== null);
  return joinLines(lines.slice(Math.max(0, lineWithReason))) || null;
}

function isGenericStatus(status: string): boolean {
  return /\.(?:0\.0|3\.0)$/.test(status);
}

function joinLines(lines: string[]): string {
  return lines.join(' ').replace(/\s+/g, ' ').trim().slice(0, MAX_DIAGNOSTIC_CHARACTERS);
}

type ClassifiedRecipient = Omit<RecipientReport, 'finalRecipient' | 'originalRecipient'>;

function classifyRecipient(
  address: string | null,
  action: ReportAction,
  status: string | null,
  diagnosticCode: string | null,
): ClassifiedRecipient {
  if (action === 'failed') {
    const kind = classifyBounce(status, diagnosticCode);
    const code = resolveStatus(status, diagnosticCode ?? '');
    return { address, action, permanence: kind.type, subType: kind.subType, status: code, diagnosticCode };
  }
  if (action === 'delayed') {
    const code = resolveStatus(status, diagnosticCode ?? '').replace(/^[25]/, '4');
    return { address, action, permanence: 'Transient', subType: 'General', status: code, diagnosticCode };
  }
  return { address, action, permanence: null, subType: null, status: status ?? '2.0.0', diagnosticCode };
}

function buildMailReport(recipients: RecipientReport[]): MailReport {
  return { kind: getReportKind(recipients), recipients, feedback: null };
}

function getReportKind(recipients: RecipientReport[]): MailKind {
  if (recipients.some(({ action }) => action === 'failed')) return 'bounce';
  return recipients.some(({ action }) => action !== 'delayed') ? 'delivered' : 'delay';
}
