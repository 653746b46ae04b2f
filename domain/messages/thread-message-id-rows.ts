import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import type { Message } from './message.entity.ts';
import { extractProviderMessageId, hashMessageId, type MessageLink } from './message-ids.ts';
import { type MessageIdSource, ThreadMessageIdEntity } from './thread-message-id.entity.ts';

/** A known id of a message, in order of priority. */
export interface KnownLink {
  hash: string;
  isOwn: boolean;
  position: number;
  source: MessageIdSource;
  /** The thread of the id, or the one it was merged into. */
  threadId: string;
}

export interface RecordedLinks {
  known: KnownLink[];
  /** The ids that this call inserted, and the thread they were recorded for. */
  inserted: { hash: string; threadId: string }[];
}

const LINK_COLUMNS = sql`hash text collate "C", "isOwn" boolean, position int, source text`;
const isUsable = sql`not (k."isOwn" and k.source = 'unverified')`;

/** A link as a statement reads it. `source` null: the id is looked up, but not recorded. */
interface LinkRow {
  hash: string;
  isOwn: boolean;
  position: number;
  source: MessageIdSource | null;
}

export function toLinkRows(links: readonly MessageLink[], isTrusted: boolean): LinkRow[] {
  return links.map(({ id, isOwn }, position) => ({
    hash: hashMessageId(id),
    isOwn,
    position,
    source: isTrusted ? (isOwn ? 'held' : 'named') : isOwn ? 'named' : null,
  }));
}

/**
 * Looks up the ids of a message and records the new ones in one statement, for the thread of the best known id or else for
 * `newThreadId`. The own id of an untrusted message that joins a thread is `unverified`.
 *
 * Ids are inserted in order, and before any thread is locked: of two messages of a conversation the second one waits here
 * until the first one's transaction has ended, and no two can wait for each other.
 */
export async function recordLinks(
  em: EntityManager,
  {
    inbox,
    links,
    isTrusted,
    newThreadId,
  }: {
    inbox: Pick<Inbox, 'id' | 'organizationId'>;
    links: readonly MessageLink[];
    isTrusted: boolean;
    newThreadId: string;
  },
): Promise<RecordedLinks> {
  if (links.length === 0) return { known: [], inserted: [] };
  const given = toLinkRows(links, isTrusted);
  const rows = await em.execute<RecordedRow[]>(
    sql`with given as materialized (select * from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as g(${LINK_COLUMNS})),
     known as materialized (
       select g.hash, g."isOwn", g.position, i.source, coalesce(t.merged_into_id, t.id) as "threadId"
       from given g
       join thread_message_ids i on i.inbox_id = ${inbox.id} and i.id_hash = g.hash
       join threads t on t.id = i.thread_id),
     target as (
       select k."threadId" from known k where ${isUsable} order by k.source = 'unverified', k.position limit 1),
     inserted as (
       insert into thread_message_ids (inbox_id, id_hash, org_id, thread_id, source)
       select ${inbox.id}, g.hash, ${inbox.organizationId},
         coalesce((select "threadId" from target), ${newThreadId}),
         case when ${!isTrusted} and exists (select from target) then 'unverified' else g.source end
       from given g
       where g.source is not null and not exists (select from known k where k.hash = g.hash)
       order by g.hash
       on conflict do nothing
       returning id_hash, thread_id)
     select g.hash, g."isOwn", g.position, k.source, k."threadId", g.source is not null as "toRecord",
       n.thread_id as "insertedFor"
     from given g left join known k on k.hash = g.hash left join inserted n on n.id_hash = g.hash
     order by g.position`,
  );
  const inserted = rows.flatMap(({ hash, insertedFor }) =>
    insertedFor === null ? [] : [{ hash, threadId: insertedFor }],
  );
  // Another transaction inserted the id while this statement ran.
  const isMissed = rows.some((row) => row.toRecord && row.insertedFor === null && row.threadId === null);
  if (!isMissed) return { known: rows.filter((row) => row.threadId !== null) as KnownLink[], inserted };
  const isNew = new Set(inserted.map(({ hash }) => hash));
  return {
    known: await findKnownLinks(
      em,
      inbox.id,
      given.filter(({ hash }) => !isNew.has(hash)),
    ),
    inserted,
  };
}

type RecordedRow = Omit<KnownLink, 'threadId'> & {
  threadId: string | null;
  toRecord: boolean;
  /** Null if the id was known before or is not recorded. */
  insertedFor: string | null;
};

/** Looks up the given ids, in order of priority. */
export async function findKnownLinks(
  em: EntityManager,
  inboxId: string,
  links: readonly Omit<LinkRow, 'source'>[],
): Promise<KnownLink[]> {
  if (links.length === 0) return [];
  return em.execute<KnownLink[]>(
    sql`select g.hash, g."isOwn", g.position, i.source, coalesce(t.merged_into_id, t.id) as "threadId"
     from jsonb_to_recordset(${JSON.stringify(links)}::jsonb) as g(${LINK_COLUMNS})
     join thread_message_ids i on i.inbox_id = ${inboxId} and i.id_hash = g.hash
     join threads t on t.id = i.thread_id
     order by g.position`,
  );
}

/**
 * Finds the threads of messages whose Message-ID a provider replaced, one per recipient. Takes no statement if no id is
 * of a provider.
 */
export async function findProviderLinks(
  em: EntityManager,
  inboxId: string,
  links: readonly MessageLink[],
): Promise<KnownLink[]> {
  const positions = new Map(
    links.flatMap(({ id }, position) => {
      const providerId = extractProviderMessageId(id);
      return providerId === null ? [] : [[providerId, position] as const];
    }),
  );
  if (positions.size === 0) return [];
  const rows = await em.execute<{ providerId: string; threadId: string }[]>(
    sql`select a.provider_message_id as "providerId", coalesce(t.merged_into_id, t.id) as "threadId"
     from send_attempts a join messages m on m.id = a.message_id join threads t on t.id = m.thread_id
     where a.provider_message_id in (${[...positions.keys()]}) and m.inbox_id = ${inboxId}
     order by m.id desc`,
  );
  return rows.flatMap(({ providerId, threadId }) => {
    const position = positions.get(providerId);
    const link = position === undefined ? undefined : links[position];
    if (position === undefined || !link) return [];
    return [{ hash: hashMessageId(link.id), isOwn: link.isOwn, position, source: 'held' as const, threadId }];
  });
}

/** Records the new, unguessable Message-ID of a message of our own: nothing else can have recorded it. */
export function persistOwnMessageId(
  em: EntityManager,
  { inboxId, organizationId, threadId, rfcMessageId }: Message,
): void {
  if (rfcMessageId === null) return;
  const idHash = hashMessageId(rfcMessageId);
  em.persist(em.create(ThreadMessageIdEntity, { inboxId, idHash, organizationId, threadId, source: 'held' }));
}

/** Assigns recorded ids to the thread of their message. The caller holds the lock of the thread they have. */
export async function assignIds(
  em: EntityManager,
  inboxId: string,
  {
    hashes,
    own,
    threadId,
  }: {
    hashes: readonly string[];
    own: { hash: string; source: MessageIdSource } | null;
    threadId: string;
  },
): Promise<void> {
  const all = [...new Set([...hashes, ...(own ? [own.hash] : [])])];
  if (all.length === 0) return;
  await em.execute(
    sql`update thread_message_ids set thread_id = ${threadId},
       source = case when id_hash = ${own?.hash ?? ''} then ${own?.source ?? 'held'} else source end
     where inbox_id = ${inboxId} and id_hash in (${all})`,
  );
}
