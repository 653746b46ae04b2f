import type { Readable } from 'node:stream';
import { leafParts, parseFields } from './mime-parts.ts';

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
const MAX_FIELD_CHARACTERS = 1_000;
const REPORT_TYPES = new Set(['message/delivery-status', 'message/global-delivery-status']);

/**
 * Reads a delivery status notification (RFC 3464; RFC 6533 for internationalised addresses).
 *
 * @param raw the mail as it was received; a stream is left destroyed.
 * @returns null for every other mail, however broken. Only errors of the stream itself are thrown.
 */
export async function parseDeliveryReport(raw: Readable | Buffer): Promise<DeliveryReport | null> {
  const bytes = Buffer.isBuffer(raw) ? raw.subarray(0, MAX_REPORT_BYTES) : await readAtMost(raw);
  for (const { contentType, content } of leafParts(bytes)) {
    if (!REPORT_TYPES.has(contentType)) continue;
    const report = readReport(content);
    if (report.recipients.length > 0) return report;
  }
  return null;
}

async function readAtMost(stream: Readable): Promise<Buffer> {
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
 * the first one out or the empty line before the second away, so a block is known by its fields.
 */
function readReport(content: string): DeliveryReport {
  const blocks = content
    .split(/\n[ \t]*(?:\n[ \t]*)+/)
    .slice(0, MAX_RECIPIENTS + 1)
    .map((block) => parseFields(Buffer.from(block, 'latin1').toString('utf8')));
  const first = blocks[0] ?? new Map<string, string>();
  return {
    recipients: blocks.flatMap((fields) => readRecipient(fields) ?? []).slice(0, MAX_RECIPIENTS),
    originalEnvelopeId:
      decodeXtext(first.get('original-envelope-id')?.slice(0, MAX_FIELD_CHARACTERS) ?? '') || null,
    arrivalDate: readDate(first.get('arrival-date')),
  };
}

function readRecipient(fields: Map<string, string>): ReportedRecipient | null {
  const status = /\b([245]\.\d{1,3}\.\d{1,3})\b/.exec(fields.get('status') ?? '')?.[1] ?? null;
  const action = readAction(fields.get('action'), status);
  const known = fields.has('final-recipient') || fields.has('original-recipient') || fields.has('action');
  if (!known || action === null) return null;
  return {
    action,
    status,
    diagnosticCode:
      fields.get('diagnostic-code')?.replace(/\s+/g, ' ').slice(0, MAX_FIELD_CHARACTERS) || null,
    finalRecipient: readAddress(fields.get('final-recipient')),
    originalRecipient: readAddress(fields.get('original-recipient')),
  };
}

/** The field's word; where a server wrote another one (`failure`), what the status says. */
function readAction(field: string | undefined, status: string | null): ReportAction | null {
  const word = /[a-z]+/i.exec(field ?? '')?.[0]?.toLowerCase();
  const action = REPORT_ACTIONS.find((known) => known === word);
  if (action) return action;
  if (status === null) return null;
  if (status.startsWith('2')) return 'delivered';
  return status.startsWith('4') ? 'delayed' : 'failed';
}

/** `rfc822; user@example.com`, with or without type and angle brackets; RFC 6533 writes `utf-8;` and `\x{…}`. */
function readAddress(field: string | undefined): string | null {
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

function readDate(field: string | undefined): Date | null {
  const time = Date.parse(field?.slice(0, 100) ?? '');
  return Number.isNaN(time) ? null : new Date(time);
}

export interface BounceKind {
  type: 'Permanent' | 'Transient';
  subType: 'General' | 'NoEmail' | 'Suppressed';
}

/** Codes that say the address is bad (RFC 3463 sections 3.2 and 3.3), and not the mail, the sender or the moment. */
const BAD_ADDRESS = new Set(['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10', '5.2.1']);
/** Codes that say no more than "no": their text decides. */
const VAGUE = new Set(['5.0.0', '5.1.0', '5.2.0', '5.3.0', '5.4.4', '5.5.0', '5.7.1']);
const SAYS_NO_MAILBOX =
  /\b(?:(?:user|recipient|mailbox|address|account|domain|host)(?: name)?(?: is| was)? (?:unknown|not found|does(?: not|n't) exist|not exist|unavailable|disabled|inactive|rejected)|(?:no such|unknown|invalid|nonexistent|non-existent|undeliverable) (?:\w+ )?(?:user|recipient|mailbox|address|account|domain|host))\b/i;
const SAYS_POLICY =
  /\b(?:spam|blocked|black ?list|block ?list|policy|reputation|relay(?:ing)?|dmarc|spf|dkim|rate|virus)\b/i;
const SAYS_SUPPRESSED = /\bsuppress(?:ed|ion)\b/i;

/**
 * The kind of a bounce, from an answer or a report.
 *
 * @param status enhanced status code, or null.
 * @param diagnostic the server's words, or null.
 */
export function classifyBounce(status: string | null, diagnostic: string | null): BounceKind {
  const text = diagnostic ?? '';
  // `5.0.0` is what servers put where they have nothing to say; their words may carry the real code.
  const code = status === null || status.endsWith('.0.0') ? codeIn(text, status) : status;
  // 5.2.2 is called permanent, but full mailboxes are emptied.
  if (code.startsWith('4') || code === '5.2.2') return { type: 'Transient', subType: 'General' };
  if (SAYS_SUPPRESSED.test(text)) return { type: 'Permanent', subType: 'Suppressed' };
  const bad =
    BAD_ADDRESS.has(code) || (VAGUE.has(code) && SAYS_NO_MAILBOX.test(text) && !SAYS_POLICY.test(text));
  return { type: 'Permanent', subType: bad ? 'NoEmail' : 'General' };
}

/** The code a text carries: an enhanced one, else what was said beside it, else the class of its reply code. */
function codeIn(text: string, status: string | null): string {
  const enhanced = /\b([245]\.\d{1,3}\.\d{1,3})\b/.exec(text)?.[1];
  if (enhanced) return enhanced;
  return status ?? `${/\b([45])\d\d\b/.exec(text)?.[1] ?? '5'}.0.0`;
}
