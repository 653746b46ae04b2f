import { AppError } from '../../platform/errors.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import type { Message } from '../messages/message.entity.ts';
import { findAddressProblem, type MailAddress } from '../mime/mail-address.ts';

export type RepliedMessage = Pick<Message, 'direction' | 'fromEmail' | 'fromName' | 'replyTo' | 'to' | 'cc'>;

export interface ReplyRecipients {
  to: MailAddress[];
  cc: MailAddress[];
}

/**
 * Finds the recipients of a reply (RFC 5322 section 3.6.3): Reply-To, otherwise From; with `replyAll` also To and Cc. A
 * reply to an outbound message is addressed to its recipients. Each address occurs once; the inbox's own addresses and
 * invalid ones are omitted.
 *
 * @param ownAddresses the addresses of the inbox; they also match with any plus tag.
 * @throws AppError `no_recipients` if no recipient remains.
 */
export function findReplyRecipients(
  original: RepliedMessage,
  { replyAll, ownAddresses }: { replyAll: boolean; ownAddresses: readonly string[] },
): ReplyRecipients {
  const seen = new Set<string>();
  const own = new Set(ownAddresses.map(baseAddress));
  const isSelf = (address: string) => own.has(baseAddress(address));
  const selectNew = (addresses: MailAddress[]) =>
    addresses.filter(({ email }) => {
      const key = email.toLowerCase();
      if (seen.has(key) || isSelf(key) || findAddressProblem(email) !== undefined) return false;
      seen.add(key);
      return true;
    });
  const to = selectNew(original.direction === 'outbound' ? original.to : findAuthors(original, isSelf));
  const cc = replyAll || to.length === 0 ? selectNew(findOthers(original, replyAll)) : [];
  if (to.length > 0) return { to, cc: replyAll ? cc : [] };
  if (cc.length > 0) return { to: cc, cc: [] };
  throw new AppError('no_recipients', {
    detail: 'The message has no address to reply to.',
    fix: 'Send a new message with explicit recipients; a draft with in_reply_to (POST /api/v1/inboxes/{inboxId}/drafts) is sent in the same thread.',
  });
}

/** Adds the recipients that the caller requests, each once. They may include the inbox's own address. */
export function addRequestedRecipients(
  { to, cc }: ReplyRecipients,
  requested: { cc: MailAddress[]; bcc: MailAddress[] },
): ReplyRecipients & { bcc: MailAddress[] } {
  const seen = new Set([...to, ...cc].map(({ email }) => email.toLowerCase()));
  const selectNew = (addresses: MailAddress[]) =>
    addresses.filter(({ email }) => {
      const key = email.toLowerCase();
      return !seen.has(key) && seen.add(key);
    });
  return { to, cc: [...cc, ...selectNew(requested.cc)], bcc: selectNew(requested.bcc) };
}

/** A Reply-To with only the inbox's own addresses is ignored in favor of From. */
function findAuthors(original: RepliedMessage, isSelf: (address: string) => boolean): MailAddress[] {
  const replyTo = original.replyTo.filter(
    ({ email }) => !isSelf(email.toLowerCase()) && findAddressProblem(email) === undefined,
  );
  if (replyTo.length > 0) return replyTo;
  const { fromEmail: email, fromName: name } = original;
  return [name ? { email, name } : { email }];
}

/** The Cc addresses of an outbound message; with `replyAll`, the To and Cc addresses of an inbound one. */
function findOthers({ direction, to, cc }: RepliedMessage, replyAll: boolean): MailAddress[] {
  if (direction === 'outbound') return cc;
  return replyAll ? [...to, ...cc] : [];
}
