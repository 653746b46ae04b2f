import type { Readable } from 'node:stream';
import { type BounceReason, findEnhancedCode, findReason, findReplyCode } from './bounce-phrases.ts';
import { type LeafPart, parseFields, parseLeafParts } from './leaf-parts.ts';

export const REPORT_ACTIONS = ['failed', 'delayed', 'delivered', 'relayed', 'expanded'] as const;
export type ReportAction = (typeof REPORT_ACTIONS)[number];

/** What a report tells of one recipient (RFC 3464 section 2.3). */
export interface ReportedRecipient {
  action: ReportAction;
  /** Enhanced status code (RFC 3463); null where the report has none that can be read. */
  status: string | null;
  /** At most 1,000 characters; null where the report has none. */
  diagnosticCode: string | null;
  /** Address the reporting server tried last; null where it cannot be read. */
  finalRecipient: string | null;
  /** Address the sender gave; null where the report does not say. */
  originalRecipient: string | null;
}

export interface DeliveryReport {
  /** At least one. */
  recipients: ReportedRecipient[];
  /** ENVID of the transaction (RFC 3461 section 4.4); null where the report has none. */
  originalEnvelopeId: string | null;
  arrivalDate: Date | null;
}

/** A report is text and headers; one that returns a large mail whole is read only this far. */
const MAX_REPORT_BYTES = 4 * 1024 * 1024;
const MAX_RECIPIENTS = 100;
const MAX_BLOCKS = 2 * MAX_RECIPIENTS;
const MAX_FIELD_CHARACTERS = 1_000;
const REPORT_TYPES = new Set(['message/delivery-status', 'message/global-delivery-status']);

/**
 * Reads a delivery status notification (RFC 3464; RFC 6533 for internationalised addresses).
 *
 * @param raw the mail as it was received; a stream is left destroyed.
 * @returns null for every other mail, however broken. Only errors of the stream itself are thrown.
 */
export async function parseDeliveryReport(raw: Readable | Buffer): Promise<DeliveryReport | null> {
  const bytes = Buffer.isBuffer(raw) ? raw.subarray(0, MAX_REPORT_BYTES) : await readReportBytes(raw);
  return findDeliveryReport(parseLeafParts(bytes));
}

/** The same, of a mail already taken apart. */
export function findDeliveryReport(leaves: LeafPart[]): DeliveryReport | null {
  for (const { contentType, content } of leaves) {
    if (!REPORT_TYPES.has(contentType)) continue;
    const report = parseStatusFields(content);
    if (report.recipients.length > 0) return report;
  }
  return null;
}

/** The first 4 MiB; the stream is left destroyed. */
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
 * Blocks of fields, an empty line between them: first the message's, then one for each recipient. Some servers leave
 * the first one out, or the empty lines between them, or put one where none belongs, so a block is known by its fields.
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
    recipients: mergeSplitBlocks(blocks)
      .flatMap((fields) => parseRecipient(fields) ?? [])
      .slice(0, MAX_RECIPIENTS),
    originalEnvelopeId:
      decodeXtext(first.get('original-envelope-id')?.slice(0, MAX_FIELD_CHARACTERS) ?? '') || null,
    arrivalDate: parseDate(first.get('arrival-date')),
  };
}

/** A second recipient in one block begins where its first field does. */
function splitRecipientBlocks(block: string): string[] {
  const starts = [...block.matchAll(/^final-recipient[ \t]*:/gim)]
    .map(({ index }) => index)
    .slice(0, MAX_RECIPIENTS);
  if (starts.length < 2) return [block];
  return starts.map((start, n) => block.slice(n === 0 ? 0 : start, starts[n + 1]));
}

/** An empty line within a recipient's block leaves a block behind that names nobody: it goes with the one before. */
function mergeSplitBlocks(blocks: Map<string, string>[]): Map<string, string>[] {
  const joined: Map<string, string>[] = [];
  for (const fields of blocks) {
    const before = joined.at(-1);
    const goesOn =
      before &&
      hasRecipient(before) &&
      !hasRecipient(fields) &&
      !(fields.has('action') && before.has('action'));
    if (goesOn) joined[joined.length - 1] = new Map([...fields, ...before]);
    else joined.push(fields);
  }
  return joined;
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

/** How servers spell the actions of RFC 3464 section 2.3.3, and what they write in their place. */
const ACTION_SPELLINGS: readonly [RegExp, ReportAction][] = [
  [/^(?:fail|error|expired?|denied|bounced?|reject|undeliver|refused)/i, 'failed'],
  [/^(?:dela[iy]|defer|warn|retry)/i, 'delayed'],
  [/^(?:deliver|success)/i, 'delivered'],
  [/^relay/i, 'relayed'],
  [/^expan/i, 'expanded'],
];

/** The field's word; where a server wrote none that is known, what the codes say. */
function parseAction(
  field: string | undefined,
  status: string | null,
  diagnostic: string | null,
): ReportAction | null {
  const word = /[a-z]+/i.exec(field ?? '')?.[0] ?? '';
  const action = ACTION_SPELLINGS.find(([spelling]) => spelling.test(word))?.[1];
  if (action) return action;
  const code =
    status ?? (diagnostic === null ? null : (findEnhancedCode(diagnostic) ?? findReplyCode(diagnostic)));
  if (code === null) return null;
  if (code.startsWith('2')) return 'delivered';
  return code.startsWith('4') ? 'delayed' : 'failed';
}

/** `rfc822; user@example.com`, with or without type and angle brackets; RFC 6533 writes `utf-8;` and `\x{…}`. */
function parseAddress(field: string | undefined): string | null {
  if (field === undefined) return null;
  const [type, ...rest] = field.slice(0, MAX_FIELD_CHARACTERS).split(';');
  const written = rest.length > 0 ? rest.join(';') : (type ?? '');
  const decoded = decodeXtext(written.replace(/\\x\{([0-9a-f]{1,6})\}/gi, decodeCodePoint));
  const address = decoded.trim().replace(/^<(.*)>$/, '$1');
  return address.includes('@') ? address : null;
}

function decodeCodePoint(written: string, hex: string): string {
  const codePoint = Number.parseInt(hex, 16);
  return codePoint <= 0x10ffff ? String.fromCodePoint(codePoint).toWellFormed() : written;
}

/**
 * RFC 3461 section 4: `+2B` stands for `+`. Only what must be encoded is decoded, because many servers copy addresses
 * unencoded, and `user+41@` is a plus-address of theirs.
 */
function decodeXtext(text: string): string {
  return text.replace(/\+(2B|3D)/g, (_match, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function parseDate(field: string | undefined): Date | null {
  const time = Date.parse(field?.slice(0, 100) ?? '');
  return Number.isNaN(time) ? null : new Date(time);
}

export interface BounceClassification {
  type: 'Permanent' | 'Transient';
  subType: 'General' | 'NoEmail' | 'Suppressed';
}

/** Codes that say the address is bad (RFC 3463 sections 3.2 and 3.3), and not the mail, the sender or the moment. */
const BAD_ADDRESS_CODES = new Set(['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10', '5.2.1']);
/** Codes that say no more than "no": their text decides. */
const VAGUE_CODES = new Set(['5.0.0', '5.1.0', '5.2.0', '5.3.0', '5.4.4', '5.5.0', '5.7.1']);
/** What the words must say for the address to be the bad thing. */
const BAD_ADDRESS_REASONS = new Set<BounceReason>([
  'user_unknown',
  'host_unknown',
  'account_disabled',
  'moved',
]);
/** Refusals of this kind name the address too, and are not about it. */
const POLICY_WORDS =
  /\b(?:spam|blocked|black ?list|block ?list|policy|reputation|relay(?:ing)?|dmarc|spf|dkim|rate|virus)\b/i;

/**
 * The kind of a bounce, from an answer or a report. The class of the status code decides, except that a full mailbox is
 * transient whatever its code (full mailboxes are emptied), and that words which speak of a passing state do where the
 * code says nothing but "no".
 *
 * @param status enhanced status code, or null.
 * @param diagnostic the server's words, or null.
 */
export function classifyBounce(status: string | null, diagnostic: string | null): BounceClassification {
  const text = diagnostic ?? '';
  const reason = findReason(text)?.reason ?? null;
  const code = resolveStatus(status, text);
  if (code.startsWith('4') || code === '5.2.2') return { type: 'Transient', subType: 'General' };
  if (reason === 'suppressed') return { type: 'Permanent', subType: 'Suppressed' };
  if (BAD_ADDRESS_CODES.has(code)) return { type: 'Permanent', subType: 'NoEmail' };
  if (reason === 'mailbox_full') return { type: 'Transient', subType: 'General' };
  const bad =
    VAGUE_CODES.has(code) && reason !== null && BAD_ADDRESS_REASONS.has(reason) && !POLICY_WORDS.test(text);
  return { type: 'Permanent', subType: bad ? 'NoEmail' : 'General' };
}

/**
 * The enhanced status code an outcome has: the one reported; where that is missing or `5.0.0`, what servers put that
 * have nothing to say, the one in the text; else what the words mean, in the class that was reported.
 */
export function resolveStatus(status: string | null, text: string): string {
  if (status !== null && !status.endsWith('.0.0')) return status;
  const told = findEnhancedCode(text);
  if (told !== null && !told.endsWith('.0.0')) return told;
  const reason = findReason(text);
  const replyClass = findReplyCode(text)?.[0];
  const reportedClass = replyClass ?? told?.[0] ?? status?.[0];
  if (reason === null) return told ?? (replyClass ? `${replyClass}.0.0` : (status ?? '5.0.0'));
  // Words of time and ways are stronger than the class a server puts on everything it gives up.
  if (reason.status.startsWith('4') && replyClass !== '5') return reason.status;
  return `${reportedClass ?? reason.status[0]}${reason.status.slice(1)}`;
}
