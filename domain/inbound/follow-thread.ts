import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { lockMerges, mergeThreads } from '../messages/merge-threads.ts';
import type { Message } from '../messages/message.entity.ts';
import { getMessageLinks } from '../messages/message-ids.ts';
import { isConversationStart, placeMessage } from '../messages/place-message.ts';
import { lockLivingThread, resolveThreadId } from '../messages/resolve-thread.ts';
import type { Thread } from '../messages/thread.entity.ts';
import { recordLinks } from '../messages/thread-message-id-rows.ts';
import { changeThread, normalizeBaseSubject } from '../messages/thread-summary.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import type { ParsedInboundMail } from '../mime/parser/pool.ts';
import { findOtherRecipients, isKnownParticipant } from './create-received-message.ts';
import type { Receipt } from './receipt.entity.ts';

type PlacedMessage = Pick<Message, 'threadId' | 'rfcMessageId' | 'inReplyTo' | 'subject' | 'signals'>;

/** A message that was placed in a thread before its header could be read. */
export interface RecoveredHeader {
  receipt: Receipt;
  /** The message as stored before. */
  message: PlacedMessage;
  mail: ParsedInboundMail;
  from: MailAddress;
  isTrusted: boolean;
}

export interface FollowedThread {
  /** Locked. */
  thread: Thread;
  isNewParticipant: boolean;
}

/** Taken before {@link followThread}. The caller reads the message after taking this lock. */
export const lockFollowing = lockMerges;

/**
 * Finds the thread of a message whose header was unknown when it was placed. If the message is alone in its thread, it
 * joins the conversation it belongs to, and the id of its thread becomes an alias. If other messages have joined the
 * thread in the meantime, it stays, and later replies find it there.
 *
 * @returns null if the thread no longer exists.
 */
export async function followThread(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  late: RecoveredHeader,
): Promise<FollowedThread | null> {
  const { db } = transaction;
  const { message, mail } = late;
  const ownId = await resolveThreadId(db, message.threadId);
  const isPlaced =
    mail.messageId === message.rfcMessageId &&
    mail.inReplyTo === message.inReplyTo &&
    mail.subject === message.subject;
  if (isPlaced) return stayInThread(db, late, ownId);
  if (!(await isAlone(db, message, ownId))) {
    const links = getMessageLinks(mail).filter(({ isOwn }) => isOwn);
    const { receipt, isTrusted } = late;
    await recordLinks(db, { inbox: toInbox(receipt), links, isTrusted, newThreadId: ownId });
    return stayInThread(db, late, ownId);
  }
  return join(transaction, outbox, late, ownId);
}

async function stayInThread(
  db: Db,
  { message, mail }: RecoveredHeader,
  ownId: string,
): Promise<FollowedThread | null> {
  const thread = await lockLivingThread(db, ownId);
  if (!thread) return null;
  if (thread.subject === '') await changeThread(db, thread.id, subjectOf(mail));
  return { thread, isNewParticipant: message.signals.includes('new_participant') };
}

async function join(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  { receipt, message, mail, from, isTrusted }: RecoveredHeader,
  ownId: string,
): Promise<FollowedThread | null> {
  const { db } = transaction;
  const inbox = toInbox(receipt);
  const { thread } = await placeMessage(transaction, outbox, {
    inbox,
    mail,
    isTrusted,
    correspondents: { from: from.email, others: findOtherRecipients(receipt, mail) },
    at: receipt.receivedAt,
    findOtherwise: async () => ownId,
  });
  if (thread.id === ownId) {
    await changeThread(db, ownId, {
      ...subjectOf(mail),
      has_root: isTrusted && isConversationStart(mail),
    });
    return { thread, isNewParticipant: message.signals.includes('new_participant') };
  }
  const isNewParticipant = !(await isKnownParticipant(db, thread, from));
  // Without its header it looked like the first message of a conversation.
  if (!(await changeThread(db, ownId, { has_root: false }))) return null;
  await mergeThreads(transaction, outbox, { inbox, targetId: thread.id, sourceIds: [ownId] });
  return { thread, isNewParticipant };
}

async function isAlone(db: Db, { threadId }: PlacedMessage, livingId: string): Promise<boolean> {
  if (threadId !== livingId) return false;
  const rows = await db
    .selectFrom('messages')
    .select('id')
    .where('thread_id', '=', livingId)
    .limit(2)
    .execute();
  return rows.length === 1;
}

const subjectOf = ({ subject }: ParsedInboundMail) => ({
  subject,
  base_subject: normalizeBaseSubject(subject),
});

const toInbox = ({ inboxId: id, organizationId, environmentId }: Receipt) => ({
  id,
  organizationId,
  environmentId,
});
