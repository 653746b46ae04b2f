import { findNamedAddresses } from '../mime/message-findings.ts';
import type { OutboundContent } from './outbound-content.ts';

/** Header fields, in lower case, with addresses that programs of the recipients write to. */
const ANSWER_FIELDS: ReadonlySet<string> = new Set([
  'sender',
  'reply-to',
  'mail-reply-to',
  'mail-followup-to',
  'list-post',
  'list-unsubscribe',
  'disposition-notification-to',
  'return-receipt-to',
  'errors-to',
  'x-confirm-reading-to',
]);

const UNKNOWN_ADDRESS = '@';

/**
 * Where a message asks its recipients to answer, other than to its sender: a deceived agent must not lead an honest
 * correspondent to the attacker.
 *
 * @returns address keys; of too many to list, one that no inbox has written to.
 */
export function findAnswerAddresses({
  replyTo,
  headers,
}: Pick<OutboundContent, 'replyTo' | 'headers'>): string[] {
  const fields = Object.entries(headers).filter(([name]) => ANSWER_FIELDS.has(name.toLowerCase()));
  const texts = [...replyTo.map(({ email }) => email), ...fields.map(([, value]) => value)];
  return findNamedAddresses(texts) ?? [UNKNOWN_ADDRESS];
}
