import { type Expression, type ExpressionBuilder, type SqlBool, sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { compileOnce } from '../../platform/database/compile-once.ts';
import type { Database } from '../../platform/database/database.ts';
import { escapeLike } from '../../platform/database/escape-like.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import { type CursorKey, type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import { columnsWithin, type Place, placeOf, type Scope } from '../identity/scope.ts';
import { findInboxWithMail } from '../inboxes/find-inbox.ts';
import { IS_VISIBLE } from './hidden-labels.ts';
import { MessageEntity } from './message.entity.ts';
import {
  findAttachments,
  findRecipients,
  type ListedMessage,
  type MessageDetails,
  WHOLE_MESSAGE,
} from './message-details.ts';
import type { MessageFilter } from './message-filter.ts';
import { needsSearch, searchMessages } from './message-search.ts';
import { loadView, type MessageView } from './message-view.ts';
import { resolveThreadId } from './resolve-thread.ts';

export type MessageService = ReturnType<typeof createMessageService>;

export function createMessageService({ database }: { database: Database }) {
  return {
    /** @throws AppError `not_found` if the credential cannot access `filter.inboxId`. */
    list: (
      scope: Scope,
      filter: MessageFilter,
      page: PageRequest,
      view: MessageView = 'summary',
    ): Promise<Page<MessageDetails>> =>
      database.read(scope, async ({ db }) => {
        const [{ items, next, keyOf }] = await Promise.all([
          listMatching(db, scope, filter, page),
          filter.inboxId === undefined ? undefined : findInboxWithMail(db, scope, filter.inboxId),
        ]);
        const shown = await loadView(db, items, view);
        const end = shown.at(-1);
        return {
          items: shown,
          next: end && shown.length < items.length ? keyOf(end.message) : next,
        };
      }),

    /**
     * @param withAllLinks reads all links of a received message, and not only those that an agent may need.
     * @throws AppError `not_found`.
     */
    get: (
      scope: Scope,
      messageId: string,
      { withAllLinks = false }: { withAllLinks?: boolean } = {},
    ): Promise<MessageDetails> =>
      database.read(scope, async ({ db }) => {
        const [message, recipients] = await Promise.all([
          findWholeMessage(db, scope, { messageId, withAllLinks }),
          findRecipients(db, [messageId]),
        ]);
        if (!message) throw notFound('message', messageId);
        return { message, recipients, attachments: await findAttachments(db, [message]) };
      }),
  };
}

const selectWholeMessage = compileOnce(
  (db, values: Place & { messageId: string; withAllLinks: boolean }) =>
    db
      .selectFrom('messages')
      .select(WHOLE_MESSAGE)
      .$if(values.withAllLinks, (query) => query.select('all_links as allLinks'))
      .where('id', '=', values.messageId)
      .where((eb) => eb.and(columnsWithin(values)))
      .modifyEnd(PREPARED),
  ['withAllLinks'],
);

async function findWholeMessage(db: Db, scope: Scope, which: { messageId: string; withAllLinks: boolean }) {
  const [message] = await selectWholeMessage(db, { ...placeOf(scope), ...which });
  return message;
}

/** A page that may end after any of its items. */
interface MessagePage extends Page<ListedMessage> {
  keyOf(message: ListedMessage): CursorKey;
}

async function listMatching(
  db: Db,
  scope: Scope,
  filter: MessageFilter,
  page: PageRequest,
): Promise<MessagePage> {
  const { threadId } = filter;
  const living =
    threadId === undefined ? filter : { ...filter, threadId: await resolveThreadId(db, threadId) };
  return needsSearch(living) ? listBySearch(db, scope, living, page) : listByIndex(db, scope, living, page);
}

/** Values that sort before and after every id. */
const [LOWEST_ID, HIGHEST_ID] = ['', '~'];

/**
 * Lists messages by time, along the index of the thread, inbox or environment. For the latter two it compares and orders row
 * values, so that only the index of both columns provides the order. With an equality on the first column, the planner scans
 * the primary key for a tenant with many messages, and reads the newer messages of all other tenants.
 */
async function listByIndex(
  db: Db,
  scope: Scope,
  filter: MessageFilter,
  page: PageRequest,
): Promise<MessagePage> {
  const { inboxId = scope.inboxId, threadId } = filter;
  const { order, after: [after] = [], limit } = page;
  const [lowest, highest] =
    order === 'asc' ? [after ?? LOWEST_ID, HIGHEST_ID] : [LOWEST_ID, after ?? HIGHEST_ID];
  const { direction, status, subject, hasAttachments, before, after: notBefore } = filter;
  const messages = await selectByIndex(db, {
    organizationId: scope.organizationId,
    environmentId: scope.environmentId,
    inboxId,
    threadId,
    direction,
    status,
    subjectPattern: subject === undefined ? undefined : `%${escapeLike(subject)}%`,
    hasAttachments,
    before,
    after: notBefore,
    lowest,
    highest,
    order,
    limit: limit + 1,
  });
  const keyOf = ({ id }: ListedMessage) => [id];
  return { ...toPage(messages, limit, keyOf), keyOf };
}

interface MessageConditions
  extends Pick<MessageFilter, 'direction' | 'status' | 'hasAttachments' | 'before' | 'after'> {
  /** Of `ilike`. */
  subjectPattern: string | undefined;
}

interface IndexedPage extends MessageConditions {
  organizationId: string;
  environmentId: string;
  inboxId: string | undefined;
  threadId: string | undefined;
  /** Ids between which the page is, without them. */
  lowest: string;
  highest: string;
  order: PageRequest['order'];
  limit: number;
}

const selectByIndex = compileOnce(
  (db, { organizationId, environmentId, inboxId, threadId, ...page }: IndexedPage) => {
    const { lowest, highest, order, limit } = page;
    const index = threadId !== undefined ? 'thread_id' : inboxId !== undefined ? 'inbox_id' : 'env_id';
    const key = sql`(${sql.ref(index)}, id)`;
    const value = threadId ?? inboxId ?? environmentId;
    return db
      .selectFrom('messages')
      .select(columnsOf(MessageEntity))
      .where('org_id', '=', organizationId)
      .$if(index !== 'env_id', (query) => query.where('env_id', '=', environmentId))
      .$if(index === 'thread_id', (query) =>
        query
          .where('thread_id', '=', value)
          .where('id', '>', lowest)
          .where('id', '<', highest)
          .$if(inboxId !== undefined, (inThread) => inThread.where('inbox_id', '=', inboxId ?? '')),
      )
      .$if(index !== 'thread_id', (query) =>
        query
          .where(sql<boolean>`${key} > (${value}, ${lowest}) and ${key} < (${value}, ${highest})`)
          .orderBy(index, order),
      )
      .where((eb) => eb.and(listConditions(eb, page)))
      .orderBy('id', order)
      .limit(limit);
  },
  ['order'],
);

async function listBySearch(
  db: Db,
  scope: Scope,
  filter: MessageFilter,
  page: PageRequest,
): Promise<MessagePage> {
  const { items: ids, next, keyOf } = await searchMessages(db, scope, filter, page);
  const messages = await db
    .selectFrom('messages')
    .select(columnsOf(MessageEntity))
    .where('id', '=', anyOf(ids))
    .where((eb) => eb.and(columnsWithin(scope)))
    .execute();
  const byId = new Map(messages.map((message) => [message.id, message]));
  return {
    items: ids.map((id) => byId.get(id)).filter((message) => message !== undefined),
    next,
    keyOf: ({ id }) => keyOf(id),
  };
}

function listConditions(
  eb: ExpressionBuilder<Tables, 'messages'>,
  { direction, status, subjectPattern, hasAttachments, before, after }: MessageConditions,
): Expression<SqlBool>[] {
  const conditions: Expression<SqlBool>[] = [IS_VISIBLE];
  if (direction) conditions.push(eb('direction', '=', direction));
  if (status) conditions.push(eb('status', '=', status));
  if (subjectPattern !== undefined) conditions.push(eb('subject', 'ilike', subjectPattern));
  if (hasAttachments !== undefined) conditions.push(eb('has_attachments', '=', hasAttachments));
  if (before) conditions.push(eb('created_at', '<', before));
  if (after) conditions.push(eb('created_at', '>=', after));
  return conditions;
}
