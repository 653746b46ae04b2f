import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import type { Message } from './message.entity.ts';
import { extractProviderMessageId, hashMessageId, type MessageLink } from './message-ids.ts';
import type { MessageIdSource } from './thread.entity.ts';

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

/** A link as a statement reads it. `source` null: the id is looked up, but not recorded. */
interface LinkRow {
  hash: string;
  isOwn: boolean;
  position: number;
  source: MessageIdSource | null;
}

/** Links as a table `g`. For links that are only looked up, the source has no effect. */
const linkTable = (links: readonly Omit<LinkRow, 'source'>[]) =>
  sql<LinkRow>`jsonb_to_recordset(${JSON.stringify(links)}::jsonb)`.as<'g'>(
    sql`g(hash text collate "C", "isOwn" boolean, position int, source text)`,
  );

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
  db: Db,
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
  const rows = await insertLinks(db, { inbox, given, isTrusted, newThreadId });
  const inserted = rows.flatMap(({ hash, insertedFor }) =>
    insertedFor === null ? [] : [{ hash, threadId: insertedFor }],
  );
  // Another transaction inserted the id while this statement ran.
  const isMissed = rows.some((row) => row.toRecord && row.insertedFor === null && row.threadId === null);
  if (!isMissed) return { known: rows.filter((row) => row.threadId !== null) as KnownLink[], inserted };
  const isNew = new Set(inserted.map(({ hash }) => hash));
  return {
    known: await findKnownLinks(
      db,
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

async function insertLinks(
  db: Db,
  {
    inbox,
    given,
    isTrusted,
    newThreadId,
  }: {
    inbox: Pick<Inbox, 'id' | 'organizationId'>;
    given: readonly LinkRow[];
    isTrusted: boolean;
    newThreadId: string;
  },
): Promise<RecordedRow[]> {
  return db
    .with(
      (cte) => cte('given').materialized(),
      (cte) => cte.selectFrom(linkTable(given)).select(['g.hash', 'g.isOwn', 'g.position', 'g.source']),
    )
    .with(
      (cte) => cte('known').materialized(),
      (cte) =>
        cte
          .selectFrom('given as g')
          .innerJoin('thread_message_ids as i', (join) =>
            join.on('i.inbox_id', '=', inbox.id).onRef('i.id_hash', '=', 'g.hash'),
          )
          .innerJoin('threads as t', 't.id', 'i.thread_id')
          .select(['g.hash', 'i.source', ({ fn }) => fn.coalesce('t.merged_into_id', 't.id').as('threadId')]),
    )
    .with('target', (cte) =>
      cte
        .selectFrom('known as k')
        .innerJoin('given as g', 'g.hash', 'k.hash')
        .select('k.threadId')
        .where((eb) => eb.not(eb.and([eb('g.isOwn', '=', true), eb('k.source', '=', 'unverified')])))
        .orderBy((eb) => eb('k.source', '=', 'unverified'))
        .orderBy('g.position')
        .limit(1),
    )
    .with('inserted', (cte) =>
      cte
        .insertInto('thread_message_ids')
        .columns(['inbox_id', 'id_hash', 'org_id', 'thread_id', 'source'])
        .expression((eb) =>
          eb
            .selectFrom('given as g')
            .select((select) => [
              select.val(inbox.id).as('inbox_id'),
              'g.hash',
              select.val(inbox.organizationId).as('org_id'),
              select.fn
                .coalesce(select.selectFrom('target').select('threadId'), select.val(newThreadId))
                .as('thread_id'),
              select
                .case()
                .when(
                  select.and([
                    sql<boolean>`${!isTrusted}::boolean`,
                    select.exists(select.selectFrom('target').select('threadId')),
                  ]),
                )
                .then(sql<MessageIdSource>`'unverified'`)
                .else(select.ref('g.source').$notNull())
                .end()
                .as('source'),
            ])
            .where('g.source', 'is not', null)
            .where((where) =>
              where.not(where.exists(where.selectFrom('known as k').whereRef('k.hash', '=', 'g.hash'))),
            )
            .orderBy('g.hash'),
        )
        .onConflict((conflict) => conflict.doNothing())
        .returning(['id_hash', 'thread_id']),
    )
    .selectFrom('given as g')
    .leftJoin('known as k', 'k.hash', 'g.hash')
    .leftJoin('inserted as n', 'n.id_hash', 'g.hash')
    .select((eb) => [
      'g.hash',
      'g.isOwn',
      'g.position',
      'k.source',
      'k.threadId',
      eb('g.source', 'is not', null).as('toRecord'),
      'n.thread_id as insertedFor',
    ])
    .orderBy('g.position')
    .execute() as Promise<RecordedRow[]>;
}

/** Looks up the given ids, in order of priority. */
export async function findKnownLinks(
  db: Db,
  inboxId: string,
  links: readonly Omit<LinkRow, 'source'>[],
): Promise<KnownLink[]> {
  if (links.length === 0) return [];
  return db
    .selectFrom(linkTable(links))
    .innerJoin('thread_message_ids as i', (join) =>
      join.on('i.inbox_id', '=', inboxId).onRef('i.id_hash', '=', 'g.hash'),
    )
    .innerJoin('threads as t', 't.id', 'i.thread_id')
    .select(({ fn }) => [
      'g.hash',
      'g.isOwn',
      'g.position',
      'i.source',
      fn.coalesce('t.merged_into_id', 't.id').as('threadId'),
    ])
    .orderBy('g.position')
    .execute();
}

/**
 * Finds the threads of messages whose Message-ID a provider replaced, one per recipient. Executes no statement if none
 * of the ids has a provider's format.
 */
export async function findProviderLinks(
  db: Db,
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
  const rows = await db
    .selectFrom('send_attempts as a')
    .innerJoin('messages as m', 'm.id', 'a.message_id')
    .innerJoin('threads as t', 't.id', 'm.thread_id')
    .select(({ fn }) => [
      'a.provider_message_id as providerId',
      fn.coalesce('t.merged_into_id', 't.id').as('threadId'),
    ])
    .where('a.provider_message_id', '=', anyOf([...positions.keys()]))
    .where('m.inbox_id', '=', inboxId)
    .orderBy('m.id', 'desc')
    .execute();
  return rows.flatMap(({ providerId, threadId }) => {
    const position = providerId === null ? undefined : positions.get(providerId);
    const link = position === undefined ? undefined : links[position];
    if (position === undefined || !link) return [];
    return [{ hash: hashMessageId(link.id), isOwn: link.isOwn, position, source: 'held' as const, threadId }];
  });
}

/**
 * Records the new, unguessable Message-ID of a message of our own, as a part (`with`) of the statement that inserts the
 * message: no other message can have recorded it.
 *
 * @param hash of the Message-ID; null if it is recorded already.
 */
export const insertOwnMessageId = (
  db: Db,
  { inboxId, organizationId, threadId }: Pick<Message, 'inboxId' | 'organizationId' | 'threadId'>,
  hash: string | null,
) =>
  db
    .insertInto('thread_message_ids')
    .columns(['inbox_id', 'id_hash', 'org_id', 'thread_id', 'source'])
    .expression(
      db
        .selectNoFrom([
          sql<string>`${inboxId}::text`.as('inbox_id'),
          sql<string>`${hash}::text`.as('id_hash'),
          sql<string>`${organizationId}::text`.as('org_id'),
          sql<string>`${threadId}::text`.as('thread_id'),
          sql<MessageIdSource>`'held'`.as('source'),
        ])
        .where(sql<boolean>`${hash}::text is not null`),
    );

/** Assigns recorded ids to the thread of their message. The caller holds the lock of the thread they have. */
export async function assignIds(
  db: Db,
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
  await db
    .updateTable('thread_message_ids')
    .set((eb) => ({
      thread_id: threadId,
      ...(own && {
        source: eb.case().when('id_hash', '=', own.hash).then(own.source).else(eb.ref('source')).end(),
      }),
    }))
    .where('inbox_id', '=', inboxId)
    .where('id_hash', '=', anyOf(all))
    .execute();
}
