import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { isReplySubject } from '../mime/subject.ts';
import { lockMerges, mergeThreads, planMerge } from './merge-threads.ts';
import { getMessageLinks, hashMessageId, type MessageLink, type ThreadReferences } from './message-ids.ts';
import { lockLivingThread, resolveThreadId } from './resolve-thread.ts';
import { type Correspondents, findThreadBySubject } from './subject-match.ts';
import { type Thread, ThreadEntity } from './thread.entity.ts';
import {
  assignIds,
  findKnownLinks,
  findProviderLinks,
  type KnownLink,
  type RecordedLinks,
  recordLinks,
  toLinkRows,
} from './thread-message-id-rows.ts';
import { changeThread, normalizeBaseSubject, type OpenThread, startThread } from './thread-summary.ts';

/** A message rarely arrives more than twice: directly and from a list. */
const MAX_COPIES = 10;

export interface Arrival {
  inbox: Pick<Inbox, 'id' | 'organizationId' | 'environmentId'>;
  mail: ThreadReferences & { messageId: string | null; subject: string };
  /**
   * False for hidden mail and mail that fails DMARC. Such a message may join a thread, but it merges no threads, and
   * the ids it names are not recorded.
   */
  isTrusted: boolean;
  /** For the match by subject; null if the message is never matched by subject. */
  correspondents: Correspondents | null;
  at: Date;
  /** Finds the id of the thread of a message without a known id. */
  findOtherwise?: () => Promise<string | null>;
}

/**
 * Finds the thread of a message, merges the threads that the message connects, and records its ids. Must run before the
 * transaction locks a thread. The result does not depend on the order in which messages arrive: threads are the
 * connected groups of the ids that trusted messages have and name, except that two conversations whose first messages
 * are known are never joined.
 */
export async function placeMessage(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  arrival: Arrival,
): Promise<OpenThread> {
  const { db } = transaction;
  const { inbox, mail, isTrusted, at } = arrival;
  const links = getMessageLinks(mail);
  const newThreadId = newId('thread');
  const recorded = await recordLinks(db, { inbox, links, isTrusted, newThreadId });
  const placing: Placing = { ...arrival, transaction, outbox, links, recorded };
  const joined = (await joinByLinks(placing)) ?? (await joinOtherwise(placing));
  const isRoot = isTrusted && isConversationStart(mail);
  const place = joined
    ? { thread: joined.thread, isNew: false }
    : startThread({ id: newThreadId, inbox, subject: mail.subject, hasRoot: isRoot, at });
  const { thread } = place;
  if (isRoot && joined?.isByLink && !thread.hasRoot)
    await changeThread(transaction.db, thread.id, { has_root: true });
  await assignRecordedIds(placing, joined, thread.id);
  return place;
}

/** Finds the thread that a message would join by its ids, without recording or locking anything. */
export async function findLinkedThreadId(
  db: Db,
  inboxId: string,
  mail: ThreadReferences & { messageId: string | null },
): Promise<string | null> {
  const links = getMessageLinks(mail);
  const known = await findKnownLinks(db, inboxId, toLinkRows(links, true));
  const provided = await findProviderLinks(db, inboxId, links);
  const [first] = selectThreadIds(combine(provided, known));
  return first === undefined ? null : resolveThreadId(db, first);
}

interface Placing extends Arrival {
  transaction: Transaction;
  outbox: Pick<Outbox, 'enqueue'>;
  links: MessageLink[];
  recorded: RecordedLinks;
}

interface Joined {
  thread: Thread;
  /** The message joined by one of its ids, not by its subject or envelope. */
  isByLink: boolean;
  /** Threads that were merged into `thread`. */
  mergedIds: readonly string[];
}

async function joinByLinks(placing: Placing): Promise<Joined | null> {
  const { inbox, links, recorded, isTrusted } = placing;
  const { db } = placing.transaction;
  let known = combine(await findProviderLinks(db, inbox.id, links), recorded.known);
  for (;;) {
    const [first, ...others] = selectThreadIds(known);
    if (first === undefined) return null;
    if (isTrusted && others.length > 0) return mergeByLinks(placing);
    const thread = await lockLivingThread(db, first);
    if (thread)
      return (await isOtherStart(placing, thread)) ? null : { thread, isByLink: true, mergedIds: [] };
    // The thread has been deleted, together with its ids.
    known = await findLinksAgain(placing);
  }
}

/**
 * Merges in one inbox are serialized, so the threads found here cannot change before they are locked. Threads are
 * locked in order of their ids, as everywhere.
 */
async function mergeByLinks(placing: Placing): Promise<Joined | null> {
  const { inbox, outbox, transaction } = placing;
  const { db } = transaction;
  await lockMerges(db, inbox.id);
  const ids: string[] = [];
  for (const id of selectThreadIds(await findLinksAgain(placing))) {
    const livingId = await resolveThreadId(db, id);
    if (!ids.includes(livingId)) ids.push(livingId);
  }
  if (ids.length === 0) return null;
  const locked = await db
    .selectFrom('threads')
    .select(['id', 'created_at as createdAt', 'has_root as hasRoot'])
    .where('id', '=', anyOf(ids))
    .orderBy('id')
    .forUpdate()
    .execute();
  const plan = planMerge(locked.toSorted((a, b) => ids.indexOf(a.id) - ids.indexOf(b.id)));
  if (!plan) return null;
  await mergeThreads(transaction, outbox, { inbox, ...plan });
  const thread = await db
    .selectFrom('threads')
    .select(columnsOf(ThreadEntity))
    .where('id', '=', plan.targetId)
    .executeTakeFirstOrThrow(() => new Error(`The locked thread ${plan.targetId} is gone`));
  return { thread, isByLink: true, mergedIds: plan.sourceIds };
}

async function joinOtherwise({
  transaction: { db },
  inbox,
  mail,
  links,
  correspondents,
  at,
  findOtherwise,
}: Placing): Promise<Joined | null> {
  const namesNone = links.every(({ isOwn }) => isOwn);
  const threadId =
    (namesNone && correspondents
      ? await findThreadBySubject(db, { inboxId: inbox.id, mail, correspondents, at })
      : null) ?? (await findOtherwise?.());
  const thread = threadId ? await lockLivingThread(db, threadId) : null;
  return thread && { thread, isByLink: false, mergedIds: [] };
}

async function findLinksAgain({
  transaction: { db },
  inbox,
  links,
  recorded,
}: Placing): Promise<KnownLink[]> {
  const own = new Set(recorded.inserted.map(({ hash }) => hash));
  const before = toLinkRows(links, true).filter(({ hash }) => !own.has(hash));
  return combine(await findProviderLinks(db, inbox.id, links), await findKnownLinks(db, inbox.id, before));
}

/**
 * An id that the provider assigned to a message of this inbox identifies that message, even if other messages have or
 * name the same id.
 */
function combine(provided: readonly KnownLink[], known: readonly KnownLink[]): KnownLink[] {
  const positions = new Set(provided.map(({ position }) => position));
  return [...provided, ...known.filter(({ position }) => !positions.has(position))].sort(
    (a, b) => a.position - b.position,
  );
}

/**
 * The threads of the known ids, in order of priority. The Message-ID of an untrusted message counts only for messages
 * that name it, and only if no other id is known.
 */
function selectThreadIds(known: readonly KnownLink[]): string[] {
  const verified = known.filter(({ source }) => source !== 'unverified');
  if (verified.length > 0) return [...new Set(verified.map(({ threadId }) => threadId))];
  const [reply] = known.filter(({ isOwn }) => !isOwn);
  return reply ? [reply.threadId] : [];
}

/** Whether the message starts a conversation: it names no message, and its subject is not that of a reply. */
export function isConversationStart(mail: Arrival['mail']): boolean {
  return getMessageLinks(mail).every(({ isOwn }) => isOwn) && !isReplySubject(mail.subject);
}

/**
 * Whether the message starts a new conversation although the locked thread has its id: the thread has a first message
 * and its messages only name the id, or the thread has a different message with the same id. Ids are read again under
 * the lock, because a copy of the message may have arrived in the meantime.
 */
async function isOtherStart(placing: Placing, thread: Thread): Promise<boolean> {
  if (!isConversationStart(placing.mail)) return false;
  const known = await findLinksAgain(placing);
  if (known.every(({ source }) => source === 'named')) return thread.hasRoot;
  return !(await hasCopy(placing));
}

/** Whether the inbox has a message with the same Message-ID and subject. A mailing list may add a tag to the subject. */
async function hasCopy({ transaction: { db }, inbox, links, mail }: Placing): Promise<boolean> {
  const own = links.find(({ isOwn }) => isOwn);
  const messages = own
    ? await db
        .selectFrom('messages')
        .select('subject')
        .where('inbox_id', '=', inbox.id)
        .where('rfc_message_id', '=', own.id)
        .limit(MAX_COPIES)
        .execute()
    : [];
  const withoutTags = (subject: string) => normalizeBaseSubject(subject).replace(/\[[^[\]]*\] ?/g, '');
  return messages.some(({ subject }) => withoutTags(subject) === withoutTags(mail.subject));
}

/** Assigns ids that were recorded for another thread to the thread that the message joined. */
async function assignRecordedIds(
  { transaction: { db }, inbox, links, recorded, isTrusted }: Placing,
  joined: Joined | null,
  threadId: string,
): Promise<void> {
  const settled = [threadId, ...(joined?.mergedIds ?? [])];
  const hashes = recorded.inserted
    .filter((inserted) => !settled.includes(inserted.threadId))
    .map(({ hash }) => hash);
  const own = links.find(({ isOwn }) => isOwn);
  const ownHash = own && hashMessageId(own.id);
  const ownIsHeld = recorded.known.some(({ isOwn, source }) => isOwn && source === 'held');
  const ownIsNew = recorded.inserted.some(({ hash }) => hash === ownHash);
  const source = findNewSource({ isTrusted, ownIsHeld, ownIsNew, joined });
  await assignIds(db, inbox.id, {
    hashes,
    own: ownHash && source ? { hash: ownHash, source } : null,
    threadId,
  });
}

/** The source to set for the message's own id; null if the recorded source is already right. */
function findNewSource({
  isTrusted,
  ownIsHeld,
  ownIsNew,
  joined,
}: {
  isTrusted: boolean;
  ownIsHeld: boolean;
  ownIsNew: boolean;
  joined: Joined | null;
}): 'held' | 'unverified' | null {
  if (isTrusted) return ownIsHeld || ownIsNew ? null : 'held';
  return ownIsNew && joined && !joined.isByLink ? 'unverified' : null;
}
