import type { Readable } from 'node:stream';
import { storableTime } from '../../platform/database/storable.ts';
import { type BounceReason, findEnhancedCode, findReason, findReplyCode } from './bounce-phrases.ts';
import { type LeafPart, parseFields, parseLeafParts } from './leaf-parts.ts';

export const REPORT_ACTIONS = ['failed', 'delayed', 'delivered', 'relayed', 'expanded'] as const;
export type ReportAction = (typeof REPORT_ACTIONS)[number];

/** Per-recipient fields (RFC 3464 section 2.3). */
export interface ReportedRecipient {
  action: ReportAction;
  /** Enhanced status code (RFC 3463); null if missing or invalid. */
  status: string | null;
  /** At most 1,000 characters; null if missing. */
  diagnosticCode: string | null;
  /** The address the reporting MTA tried; null if missing or invalid. */
  finalRecipient: string | null;
  /** The address the sender specified; null if missing. */
  originalRecipient: string | null;
}

export interface DeliveryReport {
  /** At least one. */
  recipients: ReportedRecipient[];
  /** ENVID of the transaction (RFC 3461 section 4.4); null if missing. */
  originalEnvelopeId: string | null;
  arrivalDate: Date | null;
}

/** Reports are small unless they return a large message, which comes after the status fields. */
const MAX_REPORT_BYTES = 4 * 1024 * 1024;
const MAX_RECIPIENTS = 100;
const MAX_BLOCKS = 2 * MAX_RECIPIENTS;
const MAX_FIELD_CHARACTERS = 1_000;
const REPORT_TYPES = new Set(['message/delivery-status', 'message/global-delivery-status']);

/**
 * Parses a delivery status notification (RFC 3464; RFC 6533 for internationalized addresses).
 *
 * @param raw the received message. A stream is destroyed.
 * @returns null for any other message, including malformed ones.
 * @throws only errors of the stream.
 */
export async function parseDeliveryReport(raw: Readable | Buffer): Promise<DeliveryReport | null> {
  const bytes = Buffer.isBuffer(raw) ? raw.subarray(0, MAX_REPORT_BYTES) : await readReportBytes(raw);
  return findDeliveryReport(parseLeafParts(bytes));
}

/** Finds the report in the parts of a message. */
export function findDeliveryReport(leaves: LeafPart[]): DeliveryReport | null {
  for (const { contentType, content } of leaves) {
    if (!REPORT_TYPES.has(contentType)) continue;
    const report = parseStatusFields(content);
    if (report.recipients.length > 0) return report;
  }
  return null;
}

/** Reads the first 4 MiB and destroys the stream. */
export async function readReportBytes(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    sizeBytes += chunk.length;
    if (sizeBytes >= MAX_REPORT_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_REPORT_BYTES);
}

/**
 * Parses the per-message fields and the blocks of per-recipient fields, separated by empty lines. Some servers omit the
 * first block or the empty lines, or insert extra ones, so blocks are recognized by their fields.
 */
export function parseStatusFields(content: string): DeliveryReport {
  const blocks = content
    .split(/\n[ \t]*(?:\n[ \t]*)+/)
    .slice(0, MAX_BLOCKS)
    .flatMap((block) => splitRecipientBlocks(Buffer.from(block, 'latin1').toString('utf8')))
    .slice(0, MAX_BLOCKS)
    .map(parseFields);
  const first = blocks[0] ?? new Map<string, string>();
  return {
    recipients: distinctRecipients(
      mergeSplitBlocks(moveMisplacedAction(blocks)).flatMap((fields) => parseRecipient(fields) ?? []),
    ).slice(0, MAX_RECIPIENTS),
    originalEnvelopeId:
      decodeXtext(first.get('original-envelope-id')?.slice(0, MAX_FIELD_CHARACTERS) ?? '') || null,
    arrivalDate: parseDate(first.get('arrival-date')),
  };
}

/** Splits a block with several recipients at their first field. */
function splitRecipientBlocks(block: string): string[] {
  const starts = [...block.matchAll(/^final-recipient[ \t]*:/gim)]
    .map(({ index }) => index)
    .slice(0, MAX_RECIPIENTS);
  if (starts.length < 2) return [block];
  return starts.map((start, n) => block.slice(n === 0 ? 0 : start, starts[n + 1]));
}

/** Some programs put the action of the only recipient into the per-message fields. */
function moveMisplacedAction(blocks: Map<string, string>[]): Map<string, string>[] {
  const [first, second, ...others] = blocks;
  const action = first?.get('action');
  if (!first || !second || action === undefined || second.has('action')) return blocks;
  if (!first.has('reporting-mta') || hasRecipient(first) || !hasRecipient(second)) return blocks;
  const message = new Map([...first].filter(([name]) => name !== 'action'));
  return [message, new Map([...second, ['action', action]]), ...others];
}

/** Some servers repeat the block of a recipient. */
function distinctRecipients(recipients: ReportedRecipient[]): ReportedRecipient[] {
  return [...new Map(recipients.map((recipient) => [JSON.stringify(recipient), recipient])).values()];
}

/** Merges a block without a recipient into the previous one: an extra empty line split them. */
function mergeSplitBlocks(blocks: Map<string, string>[]): Map<string, string>[] {
  const merged: Map<string, string>[] = [];
  for (const fields of blocks) {
    const before = merged.at(-1);
    const continuesPrevious =
      before &&
      hasRecipient(before) &&
      !hasRecipient(fields) &&
      !(fields.has('action') && before.has('action'));
    if (continuesPrevious) merged[merged.length - 1] = new Map([...fields, ...before]);
    else merged.push(fields);
  }
  return merged;
}

function hasRecipient(fields: Map<string, string>): boolean {
  return fields.has('final-recipient') || fields.has('original-recipient');
}

function parseRecipient(fields: Map<string, string>): ReportedRecipient | null {
  const status = /\b([245]\.\d{1,3}\.\d{1,3})\b/.exec(fields.get('status') ?? '')?.[1] ?? null;
  const diagnosticCode =
    fields.get('diagnostic-code')?.replace(/\s+/g, ' ').slice(0, MAX_FIELD_CHARACTERS) || null;
  const action = parseAction(fields.get('action'), status, diagnosticCode);
  const known = hasRecipient(fields) || fields.has('action');
  if (!known || action === null) return null;
  return {
    action,
    status,
    diagnosticCode,
    finalRecipient:
      parseAddress(fields.get('final-recipient')) ?? parseAddress(fields.get('x-actual-recipient')),
    originalRecipient: parseAddress(fields.get('original-recipient')),
  };
}

/** Spellings of the actions of RFC 3464 section 2.3.3, and nonstandard synonyms. */
const ACTION_SPELLINGS: readonly [RegExp, ReportAction][] = [
  [/^(?:fail|error|expired?|denied|bounced?|reject|undeliver|refused)/i, 'failed'],
  [/^(?:dela[iy]|defer|warn|retry)/i, 'delayed'],
  [/^(?:deliver|success)/i, 'delivered'],
  [/^relay/i, 'relayed'],
  [/^expan/i, 'expanded'],
];

/** `smtp; 250 2.1.5 OK` */
const ACCEPTED = /\b2\d\d[ -]2\.\d{1,3}\.\d{1,3}\b/;

/** Derives the action from the field, or from the codes if the field is missing or unknown. */
function parseAction(
  field: string | undefined,
  status: string | null,
  diagnostic: string | null,
): ReportAction | null {
  const word = /[a-z]+/i.exec(field ?? '')?.[0] ?? '';
  const action = ACTION_SPELLINGS.find(([spelling]) => spelling.test(word))?.[1];
  if (action) return action;
  if (status === null && diagnostic !== null && ACCEPTED.test(diagnostic)) return 'delivered';
  const code =
    status ?? (diagnostic === null ? null : (findEnhancedCode(diagnostic) ?? findReplyCode(diagnostic)));
  if (code === null) return null;
  if (code.startsWith('2')) return 'delivered';
  return code.startsWith('4') ? 'delayed' : 'failed';
}

/** Parses `rfc822; user@example.com`, with or without type and angle brackets. RFC 6533 uses `utf-8;` and `\x{…}`. */
function parseAddress(field: string | undefined): string | null {
  if (field === undefined) return null;
  const [type, ...rest] = field.slice(0, MAX_FIELD_CHARACTERS).split(';');
  const value = rest.length > 0 ? rest.join(';') : (type ?? '');
  const decoded = decodeXtext(value.replace(/\\x\{([0-9a-f]{1,6})\}/gi, decodeCodePoint));
  const address = decoded.trim().replace(/^<(.*)>$/, '$1');
  return address.includes('@') ? address : null;
}

function decodeCodePoint(written: string, hex: string): string {
  const codePoint = Number.parseInt(hex, 16);
  return codePoint <= 0x10ffff ? String.fromCodePoint(codePoint).toWellFormed() : written;
}

/**
 * RFC 3461 section 4: `+2B` encodes `+`. Decodes only the characters that must be encoded: many servers copy addresses
 * unencoded, and `user+41@` may be a plus address.
 */
function decodeXtext(text: string): string {
  return text.replace(/\+(2B|3D)/g, (_match, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function parseDate(field: string | undefined): Date | null {
  return storableTime(Date.parse(field?.slice(0, 100) ?? ''));
}

export interface BounceClassification {
  type: 'Permanent' | 'Transient';
  subType: 'General' | 'NoEmail' | 'Suppressed';
}

/**
 * Codes for an invalid address (RFC 3463 sections 3.2 and 3.3), as opposed to the message, the sender or a temporary
 * condition.
 */
const BAD_ADDRESS_CODES = new Set(['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10', '5.2.1']);
/** Generic codes, for which the text determines the classification. */
const GENERIC_CODES = new Set(['5.0.0', '5.1.0', '5.2.0', '5.3.0', '5.4.4', '5.5.0', '5.7.1']);
/** Reasons that mean an invalid address. */
const BAD_ADDRESS_REASONS = new Set<BounceReason>([
  'user_unknown',
  'host_unknown',
  'account_disabled',
  'moved',
]);
/** Reasons for which servers also report the code of an invalid address although the address is valid. */
const OTHER_REASONS = new Set<BounceReason>(['policy', 'too_big', 'relay_denied', 'loop']);
/** Policy rejections also mention the address, but do not mean that it is invalid. */
const POLICY_WORDS =
  /\b(?:spam|blocked|black ?list|block ?list|policy|reputation|relay(?:ing)?|dmarc|spf|dkim|rate|virus)\b/i;

/**
 * Classifies a bounce from an SMTP reply or a report. The class of the status code determines the type, with two
 * exceptions: a full mailbox is always transient, and for a generic code, text about a temporary condition takes
 * precedence.
 *
 * @param status enhanced status code, or null.
 * @param diagnostic text of the server, or null.
 */
export function classifyBounce(status: string | null, diagnostic: string | null): BounceClassification {
  const text = diagnostic ?? '';
  const reason = findReason(text)?.reason ?? null;
  const code = resolveStatus(status, text);
  if (code.startsWith('4') || code === '5.2.2') return { type: 'Transient', subType: 'General' };
  if (reason === 'mailbox_full') return { type: 'Transient', subType: 'General' };
  if (reason === 'suppressed') return { type: 'Permanent', subType: 'Suppressed' };
  if (BAD_ADDRESS_CODES.has(code) && !(reason !== null && OTHER_REASONS.has(reason)))
    return { type: 'Permanent', subType: 'NoEmail' };
  const isBadAddress =
    GENERIC_CODES.has(code) && reason !== null && BAD_ADDRESS_REASONS.has(reason) && !POLICY_WORDS.test(text);
  return { type: 'Permanent', subType: isBadAddress ? 'NoEmail' : 'General' };
}

/**
 * Determines the enhanced status code: the reported code; if it is missing or `x.0.0`, the code in the text; otherwise
 * the code that matches the text, in the reported class.
 */
export function resolveStatus(status: string | null, text: string): string {
  // Ignores a success code that was reported for a failure.
  if (status !== null && !status.endsWith('.0.0') && !status.startsWith('2')) return status;
  const codeInText = findEnhancedCode(text);
  if (codeInText !== null && !codeInText.endsWith('.0.0')) return codeInText;
  const reason = findReason(text);
  const replyClass = findReplyCode(text)?.[0];
  const statusClass = status?.startsWith('2') ? undefined : status?.[0];
  const reportedClass = replyClass ?? codeInText?.[0] ?? statusClass;
  if (reason === null) return codeInText ?? `${reportedClass ?? '5'}.0.0`;
  // A temporary reason takes precedence over class 5, which servers use for every message that they stop retrying.
  if (reason.status.startsWith('4') && replyClass !== '5') return reason.status;
  return `${reportedClass ?? reason.status[0]}${reason.status.slice(1)}`;
}
