import {
  isAutoReply,
  isBounceNotice,
  isDelayNotice,
  isSuccessNotice,
  type Notice,
  parseNotice,
} from './bounce-notice.ts';
import { findEnhancedCode, findReason, findReplyCode } from './bounce-phrases.ts';
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
import { type LeafPart, parseHeaderFields, parseLeafParts } from './leaf-parts.ts';

/** What a mail is to one who waits for news of what was sent. */
export type MailKind = 'bounce' | 'delay' | 'delivered' | 'complaint' | 'auto_reply' | 'mail';

/** What a mail tells of one recipient. */
export interface RecipientReport {
  /** Null where the mail names nobody. */
  address: string | null;
  action: ReportAction;
  /** `Transient` for delays and whatever may pass; null where the mail arrived. */
  permanence: BounceClassification['type'] | null;
  subType: BounceClassification['subType'] | null;
  /** Enhanced status code (RFC 3463): the one told, or the one its words amount to. */
  status: string;
  /** At most 1,000 characters; null where nothing was said. */
  diagnosticCode: string | null;
  /** What the report's own fields say, where it has any; null elsewhere. */
  finalRecipient: string | null;
  originalRecipient: string | null;
}

export interface MailReport {
  kind: MailKind;
  /** Empty unless the mail is a bounce, a delay or a delivery. */
  recipients: RecipientReport[];
  /** For complaints alone. */
  feedback: FeedbackReport | null;
}

const MAX_DIAGNOSTIC_CHARACTERS = 1_000;
const MAX_REPORT_BYTES = 4 * 1024 * 1024;

/**
 * Says what a mail tells of mails sent before: by its machine-readable part (RFC 3464, RFC 5965), else by the rules for
 * the words of mail servers.
 *
 * @param raw the whole mail; the first 4 MiB are read.
 * @returns `mail` for whatever is none of it, however broken. Never throws.
 */
export function readMailReport(raw: Buffer): MailReport {
  const bytes = raw.subarray(0, MAX_REPORT_BYTES);
  const fields = parseHeaderFields(bytes);
  const leaves = parseLeafParts(bytes);
  const feedback = findFeedbackReport(fields, leaves);
  if (feedback) return { kind: 'complaint', recipients: [], feedback };
  const notice = parseNotice(fields, leaves);
  const told = findDeliveryReport(leaves)?.recipients ?? findUntypedReport(notice, leaves);
  if (told.length > 0)
    return buildMailReport(told.map((recipient) => completeFromNotice(recipient, notice, told.length === 1)));
  if (isAutoReply(notice)) return { kind: 'auto_reply', recipients: [], feedback: null };
  if (isBounceNotice(notice)) return buildMailReport(parseNoticeText(notice));
  return { kind: 'mail', recipients: [], feedback: null };
}

/** The fields of a report in a part that does not say it is one; believed only of a mail that looks like a bounce. */
function findUntypedReport(notice: Notice, leaves: LeafPart[]): ReportedRecipient[] {
  const part = leaves.find(({ content }) => /^final-recipient[ \t]*:/im.test(content));
  if (!part || !isBounceNotice(notice)) return [];
  const at = /^(?:reporting-mta|final-recipient|original-recipient)[ \t]*:/im.exec(part.content)?.index ?? 0;
  return parseStatusFields(part.content.slice(at)).recipients.filter(
    ({ finalRecipient, originalRecipient }) => finalRecipient !== null || originalRecipient !== null,
  );
}

/** What the fields leave open, the words below them may say. */
function completeFromNotice(told: ReportedRecipient, notice: Notice, alone: boolean): RecipientReport {
  const named = alone && needsNoticeText(told) ? findRecipients(notice) : [];
  const address =
    told.finalRecipient ?? told.originalRecipient ?? named[0]?.address ?? findReturnedRecipient(notice);
  const words =
    named.find((one) => one.address?.toLowerCase() === address?.toLowerCase())?.detail ?? named[0]?.detail;
  const diagnosticCode = told.diagnosticCode ?? (words ? extractDiagnostic(words) : null);
  const { finalRecipient, originalRecipient } = told;
  return {
    ...classifyRecipient(address, told.action, told.status, diagnosticCode),
    finalRecipient,
    originalRecipient,
  };
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
  return findRecipients(notice).map(({ address, detail }) => {
    const about = statesReason(detail) ? detail : `${detail}\n${notice.text}`;
    const unnamed = { finalRecipient: null, originalRecipient: null };
    return { ...classifyRecipient(address, action, null, extractDiagnostic(about)), ...unnamed };
  });
}

function statesReason(text: string): boolean {
  return findReplyCode(text) !== null || findEnhancedCode(text) !== null || findReason(text) !== null;
}

/**
 * The words from the first line that gives a code on; all of them, where what follows the code says less than they do,
 * or no code stands there but a reason somewhere.
 */
function extractDiagnostic(words: string): string | null {
  const lines = words.split('\n').map((line) => line.trim());
  const coded = lines.findIndex((line) => findEnhancedCode(line) !== null || findReplyCode(line) !== null);
  if (coded !== -1) {
    const told = joinLines(lines.slice(coded));
    const status = resolveStatus(null, told);
    if (!isVagueStatus(status) || !findReason(joinLines(lines))) return told;
  }
  // A reason may be wrapped from one line into the next.
  const reasoned = lines.findIndex((line, at) => findReason(`${line} ${lines[at + 1] ?? ''}`) !== null);
  return joinLines(lines.slice(Math.max(0, reasoned))) || null;
}

function isVagueStatus(status: string): boolean {
  return /\.(?:0\.0|3\.0)$/.test(status);
}

function joinLines(lines: string[]): string {
  return lines.join(' ').replace(/\s+/g, ' ').trim().slice(0, MAX_DIAGNOSTIC_CHARACTERS);
}

type Classified = Omit<RecipientReport, 'finalRecipient' | 'originalRecipient'>;

function classifyRecipient(
  address: string | null,
  action: ReportAction,
  status: string | null,
  diagnosticCode: string | null,
): Classified {
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
