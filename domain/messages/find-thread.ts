import { type LockMode, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { MailAddress } from '../mime/mail-address.ts';
import type { ParsedMail } from '../mime/parse-mail.ts';
import { extractProviderMessageId, getCandidateMessageIds, toSubjectMatch } from './message-ids.ts';
import { type Thread, ThreadEntity } from './thread.entity.ts';
import { normalizeBaseSubject } from './thread-summary.ts';

interface ThreadLookup {
  inboxId: string;
  mail: Pick<ParsedMail, 'inReplyTo' | 'references' | 'subject'>;
  from: MailAddress;
  at: Date;
}

/**
 * Finds the thread of a message by the message ids it references: In-Reply-To first, then References from last to
 * first. Only a message without references is matched by subject.
 *
 * @returns null if the message starts a thread.
 */
export async function findThread(
  em: EntityManager,
  lookup: ThreadLookup,
  lockMode: LockMode,
): Promise<Thread | null> {
  const messageIds = getCandidateMessageIds(lookup.mail);
  const threadId =
    messageIds.length > 0 ? await findThreadByMessageIds(em, lookup.inboxId, messageIds) : null;
  if (threadId !== null) return em.findOne(ThreadEntity, { id: threadId }, { lockMode });
  return messageIds.length > 0 ? null : findThreadBySubject(em, lookup, lockMode);
}

/**
 * Matches the Message-ID, and the ids with which a provider replaced it, one per recipient. Only messages of the same
 * inbox match, so that a sender cannot join a thread of another inbox by referencing its ids.
 */
async function findThreadByMessageIds(
  em: EntityManager,
  inboxId: string,
  messageIds: string[],
): Promise<string | null> {
  const byProviderId = new Map(
    messageIds.flatMap((id) => {
      const providerId = extractProviderMessageId(id);
      return providerId === null ? [] : [[providerId, id] as const];
    }),
  );
  const found = await em.execute<{ namedAs: string; isAlias: boolean; threadId: string }[]>(
    // If two messages have the same id, the older one wins: an id can be copied only after it was seen.
    sql`select "namedAs", "isAlias", "threadId" from (
       select id, rfc_message_id as "namedAs", false as "isAlias", thread_id as "threadId"
       from messages where inbox_id = ${inboxId} and rfc_message_id in (${messageIds})
       union all
       select m.id, a.provider_message_id, true, m.thread_id
       from send_attempts a join messages m on m.id = a.message_id
       where ${byProviderId.size === 0 ? sql`false` : sql`a.provider_message_id in (${[...byProviderId.keys()]})`}
         and m.inbox_id = ${inboxId}
     ) as known order by id desc`,
  );
  const threadIdByMessageId = new Map(
    found.map(({ namedAs, isAlias, threadId }) => [isAlias ? byProviderId.get(namedAs) : namedAs, threadId]),
  );
  const first = messageIds.find((id) => threadIdByMessageId.has(id));
  return first === undefined ? null : (threadIdByMessageId.get(first) ?? null);
}

/** Finds a thread with the same base subject in which the sender participates. */
async function findThreadBySubject(
  em: EntityManager,
  lookup: ThreadLookup,
  lockMode: LockMode,
): Promise<Thread | null> {
  const { inboxId, mail, from, at } = lookup;
  const match = toSubjectMatch({ ...mail, at });
  if (!match) return null;
  return em.findOne(
    ThreadEntity,
    {
      inboxId,
      baseSubject: normalizeBaseSubject(match.baseSubject),
      lastMessageAt: { $gte: match.since },
      participants: { $contains: [from.email.toLowerCase()] },
    },
    { orderBy: { lastMessageAt: 'desc' }, lockMode },
  );
}
