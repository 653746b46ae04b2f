import { type FilterQuery, sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import {
  findRow,
  findRows,
  type Row,
  type RowQuery,
  type RowReader,
} from '../../platform/database/find-rows.ts';
import { notFound } from '../../platform/errors.ts';
import { type CursorKey, type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import { type Scope, withinScope } from '../identity/scope.ts';
import { findInboxWithMail } from '../inboxes/find-inbox.ts';
import { HIDDEN_LABELS } from './hidden-labels.ts';
import { type Message, MessageEntity } from './message.entity.ts';
import { loadDetails, loadDetailsForAll, type MessageDetails } from './message-details.ts';
import type { MessageFilter } from './message-filter.ts';
import { escapeLike, needsSearch, searchMessages } from './message-search.ts';
import { loadView, type MessageView } from './message-view.ts';
import { resolveThreadId } from './resolve-thread.ts';

export interface MessageService {
  /** @throws AppError `not_found` if the credential cannot access `filter.inboxId`. */
  list(
    scope: Scope,
    filter: MessageFilter,
    page: PageRequest,
    view?: MessageView,
  ): Promise<Page<MessageDetails>>;
  /** @throws AppError `not_found`. */
  get(scope: Scope, messageId: string): Promise<MessageDetails>;
}

export function createMessageService({ database }: { database: Database }): MessageService {
  return {
    list: (scope, requested, page, view = 'summary') =>
      database.read(scope, async (reader) => {
        const { inboxId, threadId } = requested;
        if (inboxId !== undefined) await findInboxWithMail(reader.db, scope, inboxId);
        const filter =
          threadId === undefined
            ? requested
            : { ...requested, threadId: await resolveThreadId(reader, threadId) };
        const { items, next, keyOf } = await (needsSearch(filter) ? listBySearch : listByIndex)(
          reader,
          scope,
          filter,
          page,
        );
        const shown = await loadView(reader, items, view);
        const end = shown.at(-1);
        return {
          items:
            view === 'compact'
              ? shown.map((message) => ({ message, recipients: [], attachments: [] }))
              : await loadDetailsForAll(reader, shown),
          next: end && shown.length < items.length ? keyOf(end) : next,
        };
      }),

    get: (scope, messageId) =>
      database.read(scope, async (reader) => {
        const message = await findRow(reader, MessageEntity, {
          where: { id: messageId, ...withinScope(scope) },
          populate: ['textBody', 'htmlBody', 'extractedText', 'hiddenText', 'headers'],
        });
        if (!message) throw notFound('message', messageId);
        return loadDetails(reader, message);
      }),
  };
}

/** A page that may end after any of its items. */
interface MessagePage extends Page<Row<Message>> {
  keyOf(message: Row<Message>): CursorKey;
}

/** Lists messages by time, along the index of the inbox or environment. */
async function listByIndex(
  reader: RowReader,
  scope: Scope,
  filter: MessageFilter,
  page: PageRequest,
): Promise<MessagePage> {
  const { where, orderBy } = buildIndexRange(scope, filter, page);
  const messages = await findRows(reader, MessageEntity, {
    where: [where, ...buildListConditions(filter)].flat(),
    orderBy,
    limit: page.limit + 1,
  });
  const keyOf = ({ id }: Row<Message>) => [id];
  return { ...toPage(messages, page.limit, keyOf), keyOf };
}

/** Values that sort before and after every id. */
const [LOWEST_ID, HIGHEST_ID] = ['', '~'];

/**
 * Builds the index range of an inbox or an environment. It compares and orders row values, so that only the index of
 * both columns provides the order. With an equality on the first column, the planner scans the primary key for a tenant
 * with many messages, and reads the newer messages of all other tenants.
 */
function buildIndexRange(
  { organizationId, environmentId, inboxId: boundTo }: Scope,
  { inboxId = boundTo, threadId }: MessageFilter,
  { order, after: [after] = [] }: PageRequest,
): Required<Pick<RowQuery<Message>, 'where' | 'orderBy'>> {
  const tenant: FilterQuery<Message> = { organizationId, environmentId };
  const [lowest, highest] =
    order === 'asc' ? [after ?? LOWEST_ID, HIGHEST_ID] : [LOWEST_ID, after ?? HIGHEST_ID];
  // Threads have their own index.
  if (threadId !== undefined)
    return {
      where: {
        ...tenant,
        ...(inboxId === undefined ? {} : { inboxId }),
        threadId,
        id: { $gt: lowest, $lt: highest },
      },
      orderBy: { id: order },
    };
  const [column, value] = inboxId === undefined ? ['env_id', environmentId] : ['inbox_id', inboxId];
  const key = sql`(${sql.ref(column)}, id)`;
  const between = sql`${key} > (${value}, ${lowest}) and ${key} < (${value}, ${highest})`;
  return {
    where: [inboxId === undefined ? { organizationId } : tenant, between],
    orderBy: inboxId === undefined ? { environmentId: order, id: order } : { inboxId: order, id: order },
  };
}

async function listBySearch(
  reader: RowReader,
  scope: Scope,
  filter: MessageFilter,
  page: PageRequest,
): Promise<MessagePage> {
  const { items: ids, next, keyOf } = await searchMessages(reader, scope, filter, page);
  const messages = await findRows(reader, MessageEntity, {
    where: { id: { $in: ids }, ...withinScope(scope) },
  });
  const byId = new Map(messages.map((message) => [message.id, message]));
  return {
    items: ids.map((id) => byId.get(id)).filter((message) => message !== undefined),
    next,
    keyOf: ({ id }) => keyOf(id),
  };
}

function buildListConditions(filter: MessageFilter): FilterQuery<Message>[] {
  const where: FilterQuery<Message>[] = [visibleOnly()];
  if (filter.direction) where.push({ direction: filter.direction });
  if (filter.status) where.push({ status: filter.status });
  if (filter.subject !== undefined) where.push({ subject: { $ilike: `%${escapeLike(filter.subject)}%` } });
  if (filter.hasAttachments !== undefined) where.push({ hasAttachments: filter.hasAttachments });
  if (filter.before) where.push({ createdAt: { $lt: filter.before } });
  if (filter.after) where.push({ createdAt: { $gte: filter.after } });
  return where;
}

/** Excludes hidden messages. A request for a hidden label uses the search index instead. */
export function visibleOnly(): FilterQuery<Message> {
  return { $not: { labels: { $overlap: [...HIDDEN_LABELS] } } };
}
