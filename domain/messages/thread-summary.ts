import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../platform/ids.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import { getBaseSubject } from '../mime/subject.ts';
import { isHidden } from './hidden-labels.ts';
import type { Message } from './message.entity.ts';
import { type Thread, ThreadEntity } from './thread.entity.ts';

export const MAX_PARTICIPANTS = 100;
export const MAX_LABELS = 100;
/** PostgreSQL rejects index rows larger than about 2,700 bytes. */
const MAX_BASE_SUBJECT_CHARACTERS = 255;

export function createThread(
  em: EntityManager,
  {
    id = newId('thread'),
    inbox,
    subject,
    hasRoot = true,
    at,
  }: {
    id?: string;
    inbox: Pick<Inbox, 'id' | 'organizationId' | 'environmentId'>;
    subject: string;
    /** See `ThreadEntity`. By default the thread starts with a message of our own. */
    hasRoot?: boolean;
    at: Date;
  },
): Thread {
  const thread = em.create(ThreadEntity, {
    id,
    organizationId: inbox.organizationId,
    environmentId: inbox.environmentId,
    inboxId: inbox.id,
    subject,
    baseSubject: normalizeBaseSubject(subject),
    hasRoot,
    lastMessageAt: at,
    createdAt: at,
  });
  em.persist(thread);
  return thread;
}

/** The form of the subject that is stored in `baseSubject` and compared by lookups. */
export function normalizeBaseSubject(subject: string): string {
  return getBaseSubject(subject).toLowerCase().slice(0, MAX_BASE_SUBJECT_CHARACTERS);
}

/**
 * Updates the thread's summary for an added message. The caller holds the thread's row lock, or has just created it.
 *
 * @param correspondents addresses of the other parties, in order.
 */
export function addToThread(thread: Thread, message: Message, correspondents: string[], at: Date): void {
  // A hidden message belongs to the thread, but the summary omits it until its label is removed.
  if (isHidden(message.labels)) return;
  thread.messageCount += 1;
  thread.preview = message.preview;
  thread.lastMessageId = message.id;
  thread.lastMessageAt = at > thread.lastMessageAt ? at : thread.lastMessageAt;
  if (message.direction === 'inbound') thread.lastInboundAt = at;
  else thread.lastOutboundAt = at;
  thread.hasAttachments ||= message.hasAttachments;
  // A message without a sender adds no participant.
  const lower = correspondents.filter((address) => address !== '').map((address) => address.toLowerCase());
  thread.participants = [...new Set([...thread.participants, ...lower])].slice(0, MAX_PARTICIPANTS);
  thread.labels = [...new Set([...thread.labels, ...message.labels])].slice(0, MAX_LABELS);
}
