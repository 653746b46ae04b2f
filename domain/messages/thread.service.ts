import type { FilterQuery } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { findRows, type Row } from '../../platform/database/find-rows.ts';
import { notFound } from '../../platform/errors.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import { type Scope, withinScope } from '../identity/scope.ts';
import { findInboxWithMail } from '../inboxes/find-inbox.ts';
import { MessageEntity } from './message.entity.ts';
import { visibleOnly } from './message.service.ts';
import { loadDetailsForAll, type MessageDetails } from './message-details.ts';
import { loadView } from './message-view.ts';
import { findLivingThread } from './resolve-thread.ts';
import { type Thread, ThreadEntity } from './thread.entity.ts';

export interface ThreadDetails {
  thread: Row<Thread>;
  /** The newest {@link MAX_THREAD_MESSAGES}, up to 4 MiB, oldest first; without bodies and headers. */
  messages: MessageDetails[];
}

export interface ThreadService {
  /**
   * Lists the threads of an inbox or of the environment by their last message.
   *
   * @throws AppError `not_found` if the credential cannot access the inbox.
   */
  list(scope: Scope, filter: { inboxId?: string }, page: PageRequest): Promise<Page<Row<Thread>>>;
  /**
   * Returns the living thread of an alias.
   *
   * @throws AppError `not_found`.
   */
  get(scope: Scope, threadId: string): Promise<ThreadDetails>;
}

export const MAX_THREAD_MESSAGES = 100;

export function createThreadService({ database }: { database: Database }): ThreadService {
  return {
    list: (scope, { inboxId }, page) =>
      database.read(scope, async (reader) => {
        if (inboxId !== undefined) await findInboxWithMail(reader.db, scope, inboxId);
        const threads = await findRows(reader, ThreadEntity, {
          where: buildListFilter(scope, inboxId, page),
          orderBy: { lastMessageAt: page.order, id: page.order },
          limit: page.limit + 1,
        });
        return toPage(threads, page.limit, ({ id, lastMessageAt }) => [lastMessageAt.toISOString(), id]);
      }),

    get: (scope, threadId) =>
      database.read(scope, async (reader) => {
        const thread = await findLivingThread(reader, scope, threadId);
        if (!thread) throw notFound('thread', threadId);
        const newest = await findRows(reader, MessageEntity, {
          where: [{ threadId: thread.id }, visibleOnly()],
          orderBy: { id: 'desc' },
          limit: MAX_THREAD_MESSAGES,
        });
        const shown = await loadView(reader, newest, 'summary');
        return { thread, messages: await loadDetailsForAll(reader, shown.reverse()) };
      }),
  };
}

function buildListFilter(
  scope: Scope,
  inboxId: string | undefined,
  page: PageRequest,
): FilterQuery<Thread>[] {
  // Excludes threads whose messages are all hidden or deleted.
  const where: FilterQuery<Thread>[] = [withinScope(scope), { messageCount: { $gt: 0 }, mergedIntoId: null }];
  if (inboxId !== undefined) where.push({ inboxId });
  const [time, id] = page.after ?? [];
  if (time !== undefined && id !== undefined) {
    // The first condition bounds the index scan; the second one orders equal times.
    const at = new Date(time);
    where.push(
      page.order === 'asc'
        ? { lastMessageAt: { $gte: at }, $or: [{ lastMessageAt: { $gt: at } }, { id: { $gt: id } }] }
        : { lastMessageAt: { $lte: at }, $or: [{ lastMessageAt: { $lt: at } }, { id: { $lt: id } }] },
    );
  }
  return where;
}
