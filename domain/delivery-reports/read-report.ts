import {
  isAutoReply,
  isBounceNotice,
  isDelayNotice,
  isSuccessNotice,
  type Notice,
  readNotice,
} from './bounce-notice.ts';
import { enhancedCodeIn, reasonIn, replyCodeIn } from './bounce-phrases.ts';
import { recipientOfReturned, recipientsOfNotice } from './bounce-recipients.ts';
import {
  type BounceKind,
  classifyBounce,
  deliveryReportIn,
  type ReportAction,
  type ReportedRecipient,
  readReport,
  statusOf,
} from './dsn.ts';
import { type FeedbackReport, readFeedback } from './feedback-report.ts';
import { headerFields, type LeafPart, leafParts } from './leaf-parts.ts';

/** What a mail is to one who waits for news of what was sent. */
export type MailKind = 'bounce' | 'delay' | 'delivered' | 'complaint' | 'auto_reply' | 'mail';

/** What a mail tells of one recipient. */
export interface RecipientReport {
  /** Null where the mail names nobody. */
  address: string | null;
  action: ReportAction;
  /** `Transient` for delays and whatever may pass; null where the mail arrived. */
  permanence: BounceKind['type'] | null;
  subType: BounceKind['subType'] | null;
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
  const fields = headerFields(bytes);
  const leaves = leafParts(bytes);
  const feedback = readFeedback(fields, leaves);
  if (feedback) return { kind: 'complaint', recipients: [], feedback };
  const notice = readNotice(fields, leaves);
  const told = deliveryReportIn(leaves)?.recipients ?? looseReport(notice, leaves);
  if (told.length > 0)
    return reportOf(told.map((recipient) => complete(recipient, notice, told.length === 1)));
  if (isAutoReply(notice)) return { kind: 'auto_reply', recipients: [], feedback: null };
  if (isBounceNotice(notice)) return reportOf(readWords(notice));
  return { kind: 'mail', recipients: [], feedback: null };
}

/** The fields of a report in a part that does not say it is one; believed only of a mail that looks like a bounce. */
function looseReport(notice: Notice, leaves: LeafPart[]): ReportedRecipient[] {
  const part = leaves.find(({ content }) => /^final-recipient[ \t]*:/im.test(content));
  if (!part || !isBounceNotice(notice)) return [];
  const at = /^(?:reporting-mta|final-recipient|original-recipient)[ \t]*:/im.exec(part.content)?.index ?? 0;
  return readReport(part.content.slice(at)).recipients.filter(
    ({ finalRecipient, originalRecipient }) => finalRecipient !== null || originalRecipient !== null,
  );
}

/** What the fields leave open, the words below them may say. */
function complete(told: ReportedRecipient, notice: Notice, alone: boolean): RecipientReport {
  const named = alone && needsWords(told) ? recipientsOfNotice(notice) : [];
  const address =
    told.finalRecipient ?? told.originalRecipient ?? named[0]?.address ?? recipientOfReturned(notice);
  const words =
    named.find((one) => one.address?.toLowerCase() === address?.toLowerCase())?.detail ?? named[0]?.detail;
  const diagnosticCode = told.diagnosticCode ?? (words ? tellingLines(words) : null);
  const { finalRecipient, originalRecipient } = told;
  return { ...judged(address, told.action, told.status, diagnosticCode), finalRecipient, originalRecipient };
}

function needsWords({
  action,
  status,
  diagnosticCode,
  finalRecipient,
  originalRecipient,
}: ReportedRecipient): boolean {
  if (finalRecipient === null && originalRecipient === null) return true;
  return action === 'failed' && diagnosticCode === null && (status === null || status.endsWith('.0.0'));
}

function readWords(notice: Notice): RecipientReport[] {
  const action: ReportAction = isSuccessNotice(notice)
    ? 'delivered'
    : isDelayNotice(notice)
      ? 'delayed'
      : 'failed';
  return recipientsOfNotice(notice).map(({ address, detail }) => {
    const about = tellsWhy(detail) ? detail : `${detail}\n${notice.text}`;
    const unnamed = { finalRecipient: null, originalRecipient: null };
    return { ...judged(address, action, null, tellingLines(about)), ...unnamed };
  });
}

function tellsWhy(text: string): boolean {
  return replyCodeIn(text) !== null || enhancedCodeIn(text) !== null || reasonIn(text) !== null;
}

/**
 * The words from the first line that gives a code on; all of them, where what follows the code says less than they do,
 * or no code stands there but a reason somewhere.
 */
function tellingLines(words: string): string | null {
  const lines = words.split('\n').map((line) => line.trim());
  const coded = lines.findIndex((line) => enhancedCodeIn(line) !== null || replyCodeIn(line) !== null);
  if (coded !== -1) {
    const told = joined(lines.slice(coded));
    const status = statusOf(null, told);
    if (!isVague(status) || !reasonIn(joined(lines))) return told;
  }
  // A reason may be wrapped from one line into the next.
  const reasoned = lines.findIndex((line, at) => reasonIn(`${line} ${lines[at + 1] ?? ''}`) !== null);
  return joined(lines.slice(Math.max(0, reasoned))) || null;
}

function isVague(status: string): boolean {
  return /\.(?:0\.0|3\.0)$/.test(status);
}

function joined(lines: string[]): string {
  return lines.join(' ').replace(/\s+/g, ' ').trim().slice(0, MAX_DIAGNOSTIC_CHARACTERS);
}

type Judged = Omit<RecipientReport, 'finalRecipient' | 'originalRecipient'>;

function judged(
  address: string | null,
  action: ReportAction,
  status: string | null,
  diagnosticCode: string | null,
): Judged {
  if (action === 'failed') {
    const kind = classifyBounce(status, diagnosticCode);
    const code = statusOf(status, diagnosticCode ?? '');
    return { address, action, permanence: kind.type, subType: kind.subType, status: code, diagnosticCode };
  }
  if (action === 'delayed') {
    const code = statusOf(status, diagnosticCode ?? '').replace(/^[25]/, '4');
    return { address, action, permanence: 'Transient', subType: 'General', status: code, diagnosticCode };
  }
  return { address, action, permanence: null, subType: null, status: status ?? '2.0.0', diagnosticCode };
}

function reportOf(recipients: RecipientReport[]): MailReport {
  return { kind: kindOf(recipients), recipients, feedback: null };
}

function kindOf(recipients: RecipientReport[]): MailKind {
  if (recipients.some(({ action }) => action === 'failed')) return 'bounce';
  return recipients.some(({ action }) => action !== 'delayed') ? 'delivered' : 'delay';
}
