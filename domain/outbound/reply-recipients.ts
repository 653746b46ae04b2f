import { AppError } from '../../platform/errors.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import type { Message } from '../messages/message.entity.ts';
import { findAddressProblem } from '../mime/address-syntax.ts';
import type { MailAddress } from '../mime/mail-address.ts';

export type RepliedMessage = Pick<Message, 'direction' | 'fromEmail' | 'fromName' | 'replyTo' | 'to' | 'cc'>;

export interface ReplyRecipients {
  to: MailAddress[];
  cc: MailAddress[];
}

/**
 * Whom an answer goes to (RFC 5322 section 3.6.3): Reply-To, else From; with `replyAll` also everybody in To and Cc. An
 * answer to a mail of our own goes to those it went to. Nobody twice, never ourselves, nobody mail cannot be sent to.
 *
 * @param own the inbox's address; with a plus-tag it is the same one.
 * @throws AppError `no_recipients` where nobody is left.
 */
export function findReplyRecipients(
  original: RepliedMessage,
  { replyAll, own }: { replyAll: boolean; own: string },
): ReplyRecipients {
  const seen = new Set<string>();
  const isSelf = createSelfCheck(own);
  const take = (addresses: MailAddress[]) =>
    addresses.filter(({ email }) => {
      const key = email.toLowerCase();
      if (seen.has(key) || isSelf(key) || findAddressProblem(email) !== undefined) return false;
      seen.add(key);
      return true;
    });
  const to = take(original.direction === 'outbound' ? original.to : findAuthors(original, isSelf));
  const cc = replyAll || to.length === 0 ? take(findOthers(original, replyAll)) : [];
  if (to.length > 0) return { to, cc: replyAll ? cc : [] };
  if (cc.length > 0) return { to: cc, cc: [] };
  throw new AppError('no_recipients', {
    detail: 'The message names nobody an answer could be sent to.',
    fix: 'Send a new message to the address you mean; a draft with in_reply_to stays in the thread.',
  });
}

/** Adds those the caller names, who are asked for and stay even where they are ourselves; each is named once. */
export function addRequestedRecipients(
  { to, cc }: ReplyRecipients,
  further: { cc: MailAddress[]; bcc: MailAddress[] },
): ReplyRecipients & { bcc: MailAddress[] } {
  const seen = new Set([...to, ...cc].map(({ email }) => email.toLowerCase()));
  const take = (addresses: MailAddress[]) =>
    addresses.filter(({ email }) => {
      const key = email.toLowerCase();
      return !seen.has(key) && seen.add(key);
    });
  return { to, cc: [...cc, ...take(further.cc)], bcc: take(further.bcc) };
}

/** A Reply-To that names only ourselves says nothing; From is then asked. */
function findAuthors(original: RepliedMessage, isSelf: (address: string) => boolean): MailAddress[] {
  const replyTo = original.replyTo.filter(
    ({ email }) => !isSelf(email.toLowerCase()) && findAddressProblem(email) === undefined,
  );
  if (replyTo.length > 0) return replyTo;
  const { fromEmail: email, fromName: name } = original;
  return [name ? { email, name } : { email }];
}

/** Of our own mail the copies, where it went to copies alone; of another's those who got it as well. */
function findOthers({ direction, to, cc }: RepliedMessage, replyAll: boolean): MailAddress[] {
  if (direction === 'outbound') return cc;
  return replyAll ? [...to, ...cc] : [];
}

function createSelfCheck(own: string): (address: string) => boolean {
  const self = baseAddress(own);
  return (address) => baseAddress(address) === self;
}
