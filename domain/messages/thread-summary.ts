import { sql } from 'kysely';
import { compileOnce } from '../../platform/database/compile-once.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { getBaseSubject } from '../mime/subject.ts';
import { isHidden } from './hidden-labels.ts';
import type { Message } from './message.entity.ts';
import type { Thread } from './thread.entity.ts';

export const MAX_PARTICIPANTS = 100;
export const MAX_LABELS = 100;
/** PostgreSQL rejects index rows larger than about 2,700 bytes. */
const MAX_BASE_SUBJECT_CHARACTERS = 255;

/** A thread that a message joins or starts. */
export interface OpenThread {
  /** Locked, unless it is new. */
  thread: Thread;
  /** {@link addToThread} inserts it. */
  isNew: boolean;
}

export function startThread({
  id = newId('thread'),
  inbox,
  subject,
  hasRoot = true,
  at,
}: {
  id?: string;
  inbox: Pick<Inbox, 'id' | 'organizationId' | 'environmentId'>;
  subject: string;
  /** See `ThreadEntity`. True by default, for a thread that starts with an outbound message. */
  hasRoot?: boolean;
  at: Date;
}): OpenThread {
  const thread: Thread = {
    id,
    organizationId: inbox.organizationId,
    environmentId: inbox.environmentId,
    inboxId: inbox.id,
    subject,
    baseSubject: normalizeBaseSubject(subject),
    preview: '',
    labels: [],
    participants: [],
    messageCount: 0,
    lastMessageId: null,
    lastMessageAt: at,
    lastInboundAt: null,
    lastOutboundAt: null,
    hasAttachments: false,
    sendPausedUntil: null,
    hasRoot,
    mergedIntoId: null,
    hasUnmovedMessages: false,
    reconciledAt: null,
    createdAt: at,
    updatedAt: at,
  };
  return { thread, isNew: true };
}

/** The form of the subject that is stored in `baseSubject` and compared by lookups. */
export function normalizeBaseSubject(subject: string): string {
  return getBaseSubject(subject).toLowerCase().slice(0, MAX_BASE_SUBJECT_CHARACTERS);
}

type AddedMessage = Pick<Message, 'id' | 'direction' | 'preview' | 'labels' | 'hasAttachments'>;

/**
 * Stores the summary of a thread with a message that is inserted next, or the whole thread if it is new.
 *
 * @param correspondents addresses of the other parties, in order.
 * @returns the thread as it is now.
 */
export async function addToThread(
  db: Db,
  { thread, isNew }: OpenThread,
  { message, correspondents, at }: { message: AddedMessage; correspondents: readonly string[]; at: Date },
): Promise<Thread> {
  // A hidden message belongs to the thread, but the summary omits it until its label is removed.
  const summary = isHidden(message.labels) ? null : addMessage(thread, message, correspondents, at);
  const added = { ...thread, ...summary };
  if (isNew) await insertThread(db, added);
  else if (summary) await updateSummary(db, { id: thread.id, ...summary });
  return added;
}

type Summary = Pick<
  Thread,
  | 'messageCount'
  | 'preview'
  | 'lastMessageId'
  | 'lastMessageAt'
  | 'lastInboundAt'
  | 'lastOutboundAt'
  | 'hasAttachments'
  | 'participants'
  | 'labels'
>;

function addMessage(
  thread: Thread,
  message: AddedMessage,
  correspondents: readonly string[],
  at: Date,
): Summary {
  const isInbound = message.direction === 'inbound';
  // A message without a sender adds no participant.
  const lower = correspondents.filter((address) => address !== '').map((address) => address.toLowerCase());
  return {
    messageCount: thread.messageCount + 1,
    preview: message.preview,
    lastMessageId: message.id,
    lastMessageAt: at > thread.lastMessageAt ? at : thread.lastMessageAt,
    lastInboundAt: isInbound ? at : thread.lastInboundAt,
    lastOutboundAt: isInbound ? thread.lastOutboundAt : at,
    hasAttachments: thread.hasAttachments || message.hasAttachments,
    participants: [...new Set([...thread.participants, ...lower])].slice(0, MAX_PARTICIPANTS),
    labels: [...new Set([...thread.labels, ...message.labels])].slice(0, MAX_LABELS),
  };
}

const toColumns = (summary: Summary) => ({
  message_count: summary.messageCount,
  preview: summary.preview,
  last_message_id: summary.lastMessageId,
  last_message_at: summary.lastMessageAt,
  last_inbound_at: summary.lastInboundAt,
  last_outbound_at: summary.lastOutboundAt,
  has_attachments: summary.hasAttachments,
  participants: summary.participants,
  labels: summary.labels,
});

const insertThread = compileOnce((db, thread: Thread) =>
  db
    .insertInto('threads')
    .values({
      id: thread.id,
      org_id: thread.organizationId,
      env_id: thread.environmentId,
      inbox_id: thread.inboxId,
      subject: thread.subject,
      base_subject: thread.baseSubject,
      has_root: thread.hasRoot,
      created_at: thread.createdAt,
      ...toColumns(thread),
    })
    .modifyEnd(PREPARED),
);

const updateSummary = compileOnce((db, { id, ...summary }: Summary & Pick<Thread, 'id'>) =>
  db
    .updateTable('threads')
    .set({ ...toColumns(summary), updated_at: sql`now()` })
    .where('id', '=', id)
    .modifyEnd(PREPARED),
);

/** Changes other columns of a thread than its summary. @returns false if the thread no longer exists. */
export async function changeThread(
  db: Db,
  id: string,
  change: { subject?: string; base_subject?: string; has_root?: boolean; send_paused_until?: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('threads')
    .set({ ...change, updated_at: sql`now()` })
    .where('id', '=', id)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
