import type { Inbox } from '../inboxes/inbox.entity.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import type { Message } from '../messages/message.entity.ts';

/** What of a message decides the sender of a reply to it. */
export type RepliedTo = Pick<Message, 'direction' | 'fromEmail' | 'deliveredTo'>;

/**
 * Chooses the address that a message leaves from: a reply leaves from the alias that the message was written to, if the inbox
 * still has it, and everything else from the inbox's address. A reply to an own message keeps that one's sender.
 *
 * @param parent null unless the message is a reply.
 */
export function senderAddress(
  { email, aliases }: Pick<Inbox, 'email' | 'aliases'>,
  parent: RepliedTo | null,
): string {
  const addressed = parent?.direction === 'outbound' ? parent.fromEmail : parent?.deliveredTo;
  const own = addressed ? baseAddress(addressed) : email;
  return aliases.includes(own) ? own : email;
}
