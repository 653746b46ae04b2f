import type { Db } from '../../platform/database/tables.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import type { Message } from '../messages/message.entity.ts';
import { type RepliedTo, senderAddress } from '../outbound/sender-address.ts';
import type { Draft } from './draft.entity.ts';

type Parent = RepliedTo & Pick<Message, 'subject'>;

/**
 * Finds the message that a draft replies to, for what is shown before the draft is sent.
 *
 * @returns null if the draft starts a thread or was submitted over SMTP, and for a target that does not exist: that is an error
 * of the send.
 */
export async function findReplyParent(db: Db, draft: Draft): Promise<Parent | null> {
  const { inReplyTo, threadId, inboxId, submission } = draft;
  if (submission || (inReplyTo === null && threadId === null)) return null;
  const parentId = inReplyTo ?? (await findLastMessageId(db, inboxId, threadId ?? ''));
  const parent = await db
    .selectFrom('messages')
    .select(['subject', 'direction', 'from_email as fromEmail', 'delivered_to as deliveredTo'])
    .where('id', '=', parentId ?? '')
    .where('inbox_id', '=', inboxId)
    .executeTakeFirst();
  return parent ?? null;
}

/** Finds the address that a draft would leave from now. */
export async function findDraftSender(
  db: Db,
  draft: Draft,
  inbox: Pick<Inbox, 'email' | 'aliases'>,
): Promise<string> {
  return inbox.aliases.length === 0 ? inbox.email : senderAddress(inbox, await findReplyParent(db, draft));
}

async function findLastMessageId(db: Db, inboxId: string, threadId: string): Promise<string | null> {
  const thread = await db
    .selectFrom('threads')
    .select('last_message_id as lastMessageId')
    .where('id', '=', threadId)
    .where('inbox_id', '=', inboxId)
    .executeTakeFirst();
  return thread?.lastMessageId ?? null;
}
