import type { LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { MailAddress } from '../mime/mail-address.ts';
import type { ParsedMail } from '../mime/parse-mail.ts';
import { candidateMessageIds, providerMessageIdIn, toSubjectMatch } from './message-ids.ts';
import { type Thread, ThreadEntity } from './thread.entity.ts';
import { normalizedBaseSubject } from './thread-summary.ts';

interface ThreadLookup {
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
  arrival: ThreadLookup,
  lockMode: LockMode,
): Promise<Thread | null> {
  const named = candidateMessageIds(arrival.mail);
  const threadId = named.length > 0 ? await findThreadByMessageIds(em, arrival.inboxId, named) : null;
  if (threadId !== null) return em.findOne(ThreadEntity, { id: threadId }, { lockMode });
  return named.length > 0 ? null : findThreadBySubject(em, arrival, lockMode);
}

/**
 * A message is named by its Message-ID, or by the one the provider that sent it gave it instead: one a recipient. Both
 * are looked for in the inbox alone, so nobody gets into a thread of another inbox by its ids.
 */
async function findThreadByMessageIds(
  em: EntityManager,
  inboxId: string,
  named: string[],
): Promise<string | null> {
  const byProviderId = new Map(
    named.flatMap((id) => {
      const providerId = providerMessageIdIn(id);
      return providerId === null ? [] : [[providerId, id] as const];
    }),
  );
  const found = await em.execute<{ namedAs: string; isAlias: boolean; threadId: string }[]>(
    // Two messages with one id: the first counts. Whoever copies an id has seen it, so the copy is the younger one.
    `select "namedAs", "isAlias", "threadId" from (
       select id, rfc_message_id as "namedAs", false as "isAlias", thread_id as "threadId"
       from messages where inbox_id = ? and rfc_message_id in (${placeholders(named)})
       union all
       select m.id, a.provider_message_id, true, m.thread_id
       from send_attempts a join messages m on m.id = a.message_id
       where ${byProviderId.size === 0 ? 'false' : `a.provider_message_id in (${placeholders([...byProviderId])})`}
         and m.inbox_id = ?
     ) as known order by id desc`,
    [inboxId, ...named, ...byProviderId.keys(), inboxId],
  );
  const threadOf = new Map(
    found.map(({ namedAs, isAlias, threadId }) => [isAlias ? byProviderId.get(namedAs) : namedAs, threadId]),
  );
  const first = named.find((id) => threadOf.has(id));
  return first === undefined ? null : (threadOf.get(first) ?? null);
}

function placeholders(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ');
}

/** The subject rule, and a thread the sender takes part in. */
async function findThreadBySubject(
  em: EntityManager,
  arrival: ThreadLookup,
  lockMode: LockMode,
): Promise<Thread | null> {
  const { inboxId, mail, from, at } = arrival;
  const match = toSubjectMatch({ ...mail, at });
  if (!match) return null;
  return em.findOne(
    ThreadEntity,
    {
      inboxId,
      baseSubject: normalizedBaseSubject(match.baseSubject),
      lastMessageAt: { $gte: match.since },
      participants: { $contains: [from.email.toLowerCase()] },
    },
    { orderBy: { lastMessageAt: 'desc' }, lockMode },
  );
}
