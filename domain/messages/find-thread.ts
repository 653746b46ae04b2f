import type { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { type Thread, ThreadEntity } from '../threads/thread.entity.ts';
import { threadingSubject } from '../threads/thread-summary.ts';
import type { MailAddress } from './addresses.ts';
import { MessageEntity } from './message.entity.ts';
import type { ParsedMail } from './parsed-mail.ts';
import { candidateMessageIds, subjectMatch } from './threading.ts';

interface Arrival {
  inboxId: string;
  mail: Pick<ParsedMail, 'inReplyTo' | 'references' | 'subject'>;
  from: MailAddress;
  at: Date;
}

/**
 * The conversation a mail belongs to: by the messages it names, In-Reply-To before References from last to first; only
 * a mail that names none is matched by its subject. Null: it starts one.
 */
export async function findThread(
  em: EntityManager,
  arrival: Arrival,
  lockMode: LockMode,
): Promise<Thread | null> {
  const named = candidateMessageIds(arrival.mail);
  const threadId = named.length > 0 ? await threadNamed(em, arrival.inboxId, named) : null;
  if (threadId !== null) return em.findOne(ThreadEntity, { id: threadId }, { lockMode });
  return named.length > 0 ? null : threadBySubject(em, arrival, lockMode);
}

async function threadNamed(em: EntityManager, inboxId: string, named: string[]): Promise<string | null> {
  const found = await em.find(
    MessageEntity,
    { inboxId, rfcMessageId: { $in: named } },
    // Two messages with one id: the first counts. Whoever copies an id has seen it, so the copy is the younger one.
    { fields: ['rfcMessageId', 'threadId'], orderBy: { id: 'desc' } },
  );
  const threadOf = new Map(found.map(({ rfcMessageId, threadId }) => [rfcMessageId, threadId]));
  const first = named.find((id) => threadOf.has(id));
  return first === undefined ? null : (threadOf.get(first) ?? null);
}

/** The subject rule, and a thread the sender takes part in. */
async function threadBySubject(
  em: EntityManager,
  arrival: Arrival,
  lockMode: LockMode,
): Promise<Thread | null> {
  const { inboxId, mail, from, at } = arrival;
  const match = subjectMatch({ ...mail, at });
  if (!match) return null;
  return em.findOne(
    ThreadEntity,
    {
      inboxId,
      baseSubject: threadingSubject(match.baseSubject),
      lastMessageAt: { $gte: match.since },
      participants: { $contains: [from.email.toLowerCase()] },
    },
    { orderBy: { lastMessageAt: 'desc' }, lockMode },
  );
}
