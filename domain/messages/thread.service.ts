import { type ExpressionBuilder, sql } from 'kysely';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import { compileOnce } from '../../platform/database/compile-once.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import { columnsWithin, type Place, placeOf, type Scope } from '../identity/scope.ts';
import { findInboxWithMail } from '../inboxes/find-inbox.ts';
import { IS_VISIBLE } from './hidden-labels.ts';
import { MessageEntity } from './message.entity.ts';
import type { MessageDetails } from './message-details.ts';
import { loadView, type MessageView } from './message-view.ts';
import { findLivingThread } from './resolve-thread.ts';
import { ThreadEntity } from './thread.entity.ts';

type ThreadRow = RowOf<typeof ThreadEntity>;

export interface ThreadDetails {
  thread: ThreadRow;
  /** The newest {@link MAX_THREAD_MESSAGES}, up to 4 MiB, oldest first; without bodies and headers. */
  messages: MessageDetails[];
}

export const MAX_THREAD_MESSAGES = 100;

/** Messages that a timeline shows of each thread. */
export const LATEST_MESSAGES = 3;

type LatestMessage = RowOf<typeof MessageEntity>;

export interface ThreadWithLatest {
  thread: ThreadRow;
  latest: LatestMessage[];
}

export interface ThreadFilter {
  inboxId?: string;
}

export type ThreadService = ReturnType<typeof createThreadService>;

export function createThreadService({ database }: { database: Database }) {
  return {
    /**
     * Lists the threads of an inbox or of the environment by their last message.
     *
     * @throws AppError `not_found` if the credential cannot access the inbox.
     */
    list: (scope: Scope, filter: ThreadFilter, page: PageRequest): Promise<Page<ThreadRow>> =>
      database.read(scope, ({ db }) => listThreads(db, scope, filter, page)),

    /**
     * As `list`, each thread with its newest {@link LATEST_MESSAGES} messages, oldest first, without bodies.
     *
     * @throws AppError `not_found` if the credential cannot access the inbox.
     */
    listWithLatest: (
      scope: Scope,
      filter: ThreadFilter,
      page: PageRequest,
    ): Promise<Page<ThreadWithLatest>> =>
      database.read(scope, async ({ db }) => {
        const { items, next } = await listThreads(db, scope, filter, page);
        const latest = await findLatestMessages(
          db,
          items.map(({ id }) => id),
        );
        const byThread = Map.groupBy(latest, ({ threadId }) => threadId);
        return { items: items.map((thread) => ({ thread, latest: byThread.get(thread.id) ?? [] })), next };
      }),

    /**
     * Returns the living thread of an alias.
     *
     * @throws AppError `not_found`.
     */
    get: (
      scope: Scope,
      threadId: string,
      view: Extract<MessageView, 'summary' | 'agent' | 'conversation'> = 'summary',
    ): Promise<ThreadDetails> =>
      database.read(scope, async ({ db }) => {
        // Together, for one round trip: an alias, whose messages are those of another thread, is rare.
        const [thread, own] = await Promise.all([
          findLivingThread(db, scope, threadId),
          selectNewest(db, { ...placeOf(scope), threadId }),
        ]);
        if (!thread) throw notFound('thread', threadId);
        const newest =
          thread.id === threadId ? own : await selectNewest(db, { ...placeOf(scope), threadId: thread.id });
        return { thread, messages: (await loadView(db, newest, view)).reverse() };
      }),
  };
}

const selectNewest = compileOnce((db, values: Place & { threadId: string }) =>
  db
    .selectFrom('messages')
    .select(columnsOf(MessageEntity))
    .where('thread_id', '=', values.threadId)
    .where((eb) => eb.and(columnsWithin(values)))
    .where(IS_VISIBLE)
    .orderBy('id', 'desc')
    .limit(MAX_THREAD_MESSAGES),
);

async function listThreads(
  db: Db,
  scope: Scope,
  { inboxId }: ThreadFilter,
  page: PageRequest,
): Promise<Page<ThreadRow>> {
  const [threads] = await Promise.all([
    selectThreads(db, {
      ...placeOf(scope),
      ofInboxId: inboxId,
      order: page.order,
      limit: page.limit + 1,
      ...startOf(page),
    }),
    inboxId === undefined ? undefined : findInboxWithMail(db, scope, inboxId),
  ]);
  return toPage(threads, page.limit, ({ id, lastMessageAt }) => [lastMessageAt.toISOString(), id]);
}

/** One scan of the index of each thread, which ends after its newest messages. */
function findLatestMessages(db: Db, threadIds: readonly string[]): Promise<LatestMessage[]> {
  return db
    .selectFrom(sql<{ listed_id: string }>`unnest(${threadIds}::text[])`.as<'l'>(sql`l(listed_id)`))
    .innerJoinLateral(
      (eb) =>
        eb
          .selectFrom('messages')
          .select(columnsOf(MessageEntity))
          .whereRef('messages.thread_id', '=', 'l.listed_id')
          .where(IS_VISIBLE)
          .orderBy('messages.id', 'desc')
          .limit(LATEST_MESSAGES)
          .as('latest'),
      (join) => join.onTrue(),
    )
    .selectAll('latest')
    .orderBy('latest.id')
    .execute();
}

interface ThreadPage extends Place {
  ofInboxId: string | undefined;
  order: PageRequest['order'];
  limit: number;
  /** The last thread of the page before; undefined for the first page. */
  time: Date | undefined;
  id: string | undefined;
}

const startOf = ({ after: [time, id] = [] }: PageRequest) => ({
  time: time === undefined ? undefined : new Date(time),
  id,
});

const selectThreads = compileOnce(
  (db, values: ThreadPage) =>
    db
      .selectFrom('threads')
      .select(columnsOf(ThreadEntity))
      .where((eb) => eb.and(columnsWithin(values)))
      // Excludes threads whose messages are all hidden or deleted.
      .where('message_count', '>', 0)
      .where('merged_into_id', 'is', null)
      .$if(values.ofInboxId !== undefined, (query) => query.where('inbox_id', '=', values.ofInboxId ?? ''))
      .where(isAfter(values))
      .orderBy('last_message_at', values.order)
      .orderBy('id', values.order)
      .limit(values.limit),
  ['order'],
);

/** The first condition bounds the index scan; the second one orders equal times. */
const isAfter =
  ({ order, time, id }: ThreadPage) =>
  (eb: ExpressionBuilder<Tables, 'threads'>) => {
    if (time === undefined || id === undefined) return eb.and([]);
    const [inclusive, exclusive] = order === 'asc' ? (['>=', '>'] as const) : (['<=', '<'] as const);
    return eb.and([
      eb('last_message_at', inclusive, time),
      eb.or([eb('last_message_at', exclusive, time), eb('id', exclusive, id)]),
    ]);
  };
