import { findCustomHeaderProblem } from '../../domain/mime/custom-header.ts';
import type { MailAddress } from '../../domain/mime/mail-address.ts';
import { MAX_RECIPIENTS, type OutboundContent } from '../../domain/outbound/outbound-content.ts';
import { invalid } from '../../platform/errors.ts';
import { encodePointerSegment } from '../plugins/validation-errors.ts';
import { parseTime } from '../time.ts';
import { type AddressInput, readAddressLists } from './addresses.ts';
import { MAX_BODY_BYTES } from './content.schemas.ts';

/** Content fields of a request body; omitted and `null` differ. */
export interface ContentBody {
  to?: AddressInput[] | null;
  cc?: AddressInput[] | null;
  bcc?: AddressInput[] | null;
  reply_to?: AddressInput[] | null;
  subject?: string | null;
  text_body?: string | null;
  html_body?: string | null;
  labels?: string[] | null;
  headers?: Record<string, string> | null;
  unsubscribe?: boolean | null;
}

/** @throws AppError `validation_error` for rules that the schema cannot express. */
function readChecked(body: ContentBody): Record<'to' | 'cc' | 'bcc' | 'reply_to', MailAddress[]> {
  const addresses = readAddressLists({ to: body.to, cc: body.cc, bcc: body.bcc, reply_to: body.reply_to });
  const { to, cc, bcc } = addresses;
  const recipients = to.length + cc.length + bcc.length;
  if (recipients > MAX_RECIPIENTS) {
    throw invalid(
      '/body/to',
      `has ${recipients} recipients including cc and bcc; at most ${MAX_RECIPIENTS} are allowed`,
      `Send several messages with at most ${MAX_RECIPIENTS} recipients each.`,
    );
  }
  for (const field of ['text_body', 'html_body'] as const) {
    if (Buffer.byteLength(body[field] ?? '') > MAX_BODY_BYTES)
      throw invalid(`/body/${field}`, 'is longer than 5 MiB', 'Shorten it, or attach a file.');
  }
  checkHeaders(body.headers ?? {});
  return addresses;
}

/** Names are case-insensitive, and a field without a value is dropped in transit (RFC 5322 sections 1.2.2, 2.2). */
function checkHeaders(headers: Record<string, string>): void {
  const names = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    const path = `/body/headers/${encodePointerSegment(name)}`;
    const problem = findCustomHeaderProblem(name, value);
    if (problem !== undefined)
      throw invalid(
        path,
        problem,
        'Omit the header, or use X-* and List-Unsubscribe* with one line of text.',
      );
    const twin = names.get(name.toLowerCase());
    if (twin !== undefined)
      throw invalid(path, `repeats the header ${twin}: names are case-insensitive`, 'Set each header once.');
    names.set(name.toLowerCase(), name);
  }
}

/** Reads the content of a message to send. */
export function readContent(body: ContentBody): OutboundContent {
  const { to, cc, bcc, reply_to: replyTo } = readChecked(body);
  return {
    to,
    cc,
    bcc,
    replyTo,
    subject: body.subject ?? null,
    textBody: body.text_body ?? null,
    htmlBody: body.html_body ?? null,
    labels: body.labels ?? [],
    headers: body.headers ?? {},
    unsubscribe: body.unsubscribe ?? false,
  };
}

/** Reads the draft fields of a request: omitted fields are omitted, `null` clears a field. */
export function readDraftContent(body: ContentBody): Partial<OutboundContent> {
  const content = readContent(body);
  const named: [keyof OutboundContent, keyof ContentBody][] = [
    ['to', 'to'],
    ['cc', 'cc'],
    ['bcc', 'bcc'],
    ['replyTo', 'reply_to'],
    ['subject', 'subject'],
    ['textBody', 'text_body'],
    ['htmlBody', 'html_body'],
    ['labels', 'labels'],
    ['headers', 'headers'],
    ['unsubscribe', 'unsubscribe'],
  ];
  return Object.fromEntries(
    named.filter(([, field]) => body[field] !== undefined).map(([name]) => [name, content[name]]),
  );
}

/** @throws AppError `validation_error`. */
export function readSendAt({ send_at: time }: { send_at?: string | null }): Date | undefined {
  return time === undefined || time === null ? undefined : parseTime('/body/send_at', time);
}
