import { type FilterQuery, LockMode, type QueryOrderMap, raw } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { type Page, type PageRequest, pageOf } from '../../platform/pagination.ts';
import { CANCEL_SEND, sendMessageWorkflowId } from '../../workflows/messages/send-message.contract.ts';
import { attachFiles } from '../attachments/attach-files.ts';
import { type Attachment, AttachmentEntity } from '../attachments/attachment.entity.ts';
import type { FileToAttach } from '../attachments/stored-file.ts';
import { type Scope, withinScope } from '../identity/scope.ts';
import { findInbox, findInboxOrDeleted } from '../inboxes/find-inbox.ts';
import type { EventService } from '../webhooks/event.service.ts';
import { cancelUnsent } from './cancel-unsent.ts';
import { HIDDEN_LABELS } from './hidden-labels.ts';
import { type Message, type MessageDirection, MessageEntity, type MessageStatus } from './message.entity.ts';
import { escapeLike, needsSearch, searchMessages } from './message-search.ts';
import type { OutboundContent } from './outbound-content.ts';
import { createOutboundMessage } from './outbound-message.ts';
import { type Recipient, RecipientEntity } from './recipient.entity.ts';
import { refuseAtCall } from './refused-send.ts';

/** A message with what hangs on it. In lists the message lacks its bodies and headers. */
export interface MessageDetails {
  message: Message;
  recipients: Recipient[];
  attachments: Attachment[];
}

export interface MessageFilter {
  inboxId?: string;
  direction?: MessageDirection;
  status?: MessageStatus;
  threadId?: string;
  /** Whole address, compared without case. */
  from?: string;
  /** Whole address among to, cc and bcc, compared without case. */
  to?: string;
  /** Part of the subject, compared without case. */
  subject?: string;
  hasAttachments?: boolean;
  /** Words and operators, see `search-query.ts`. */
  q?: string;
  /** Created before this time. */
  before?: Date;
  /** Created at or after this time. */
  after?: Date;
  label?: string;
}

export interface MessageService {
  /**
   * Queues a message of its own thread; the commit starts `sendMessage`.
   *
   * @throws AppError `not_found`, `no_recipients`, `message_rejected`, `*_suspended`, `payload_too_large`,
   * `usage_limit_exceeded`.
   */
  send(
    scope: Scope,
    inboxId: string,
    content: OutboundContent,
    files?: readonly FileToAttach[],
  ): Promise<MessageDetails>;
  /** @throws AppError `not_found` where `filter.inboxId` is out of reach. */
  list(scope: Scope, filter: MessageFilter, page: PageRequest): Promise<Page<MessageDetails>>;
  /** @throws AppError `not_found`. */
  get(scope: Scope, messageId: string): Promise<MessageDetails>;
  /**
   * Stops a message of which nothing has left yet (`queued` or `deferred`).
   *
   * @throws AppError `not_found`, `conflict`.
   */
  cancel(scope: Scope, messageId: string): Promise<MessageDetails>;
}

export interface MessageServiceOptions {
  database: Database;
  outbox: Outbox;
  events: EventService;
  now?: () => Date;
}

export function createMessageService({
  database,
  outbox,
  events,
  now = () => new Date(),
}: MessageServiceOptions): MessageService {
  return {
    send: (scope, inboxId, content, files = []) =>
      database.transaction(scope, async (transaction) => {
        const inbox = await findInbox(transaction.em, scope, inboxId);
        const refusal = await refuseAtCall(transaction, events, inbox, content);
        if (refusal) throw refusal;
        const attachments = await attachFiles(transaction.em, { scope, inbox, files });
        return createOutboundMessage(transaction, outbox, {
          inbox,
          content,
          thread: null,
          parent: null,
          attachments,
          now: now(),
        });
      }),

    list: (scope, filter, page) =>
      database.transaction(scope, async ({ em }) => {
        if (filter.inboxId !== undefined) await findInboxOrDeleted(em, scope, filter.inboxId);
        const { items, next } = await (needsSearch(filter) ? searched : walked)(em, scope, filter, page);
        return { items: await withDetails(em, items), next };
      }),

    get: (scope, messageId) =>
      database.transaction(scope, async ({ em }) => {
        const message = await em.findOne(
          MessageEntity,
          { id: messageId, ...withinScope(scope) },
          { populate: ['textBody', 'htmlBody', 'extractedText', 'headers'] },
        );
        if (!message) throw notFound('message', messageId);
        return withDetail(em, message);
      }),

    cancel: (scope, messageId) =>
      database.transaction(scope, (transaction) => cancel(transaction, scope, messageId, outbox)),
  };
}

async function cancel(
  transaction: Transaction,
  scope: Scope,
  messageId: string,
  outbox: Outbox,
): Promise<MessageDetails> {
  const { em } = transaction;
  const message = await em.findOne(
    MessageEntity,
    { id: messageId, ...withinScope(scope) },
    { populate: ['textBody', 'htmlBody', 'extractedText', 'headers'], lockMode: LockMode.PESSIMISTIC_WRITE },
  );
  if (!message) throw notFound('message', messageId);
  if (message.direction === 'inbound' || !(await cancelUnsent(em, message, 'Canceled through the API.'))) {
    throw new AppError('conflict', {
      detail: `The message is ${message.status}; only one of which nothing has left can be canceled.`,
      fix: fixOfLateCancel(message),
      extensions: { message_status: message.status },
    });
  }
  outbox.enqueue(transaction, message.organizationId, {
    signal: { workflowId: sendMessageWorkflowId(message.id), signalName: CANCEL_SEND, args: [] },
  });
  return withDetail(em, message);
}

function fixOfLateCancel({ direction, status }: Message): string {
  if (direction === 'inbound') return 'Delete it, if it is to go: only what is to be sent can be canceled.';
  if (status === 'canceled' || status === 'rejected' || status === 'failed')
    return 'Nothing needs to be done: it is not sent any more.';
  return 'Nothing can be taken back once a mail has left; wait for its outcome.';
}

/** By time, along the index of the inbox or environment. */
async function walked(
  em: EntityManager,
  scope: Scope,
  filter: MessageFilter,
  page: PageRequest,
): Promise<Page<Message>> {
  const { where, orderBy } = walkOf(scope, filter, page);
  const messages = await em.find(
    MessageEntity,
    { $and: [where, ...listConditions(filter)] },
    { orderBy, limit: page.limit + 1 },
  );
  return pageOf(messages, page.limit, ({ id }) => [id]);
}

/** Below and above every id. */
const [LOWEST_ID, HIGHEST_ID] = ['', '~'];

/**
 * The way through an inbox, or an environment. Compared and ordered as rows, so that only the index of both columns gives
 * the order: with an equality on the first the planner walks the primary key instead where a tenant has much of the
 * mail, through the newer mail of everybody else.
 */
function walkOf(
  { organizationId, environmentId, inboxId: boundTo }: Scope,
  { inboxId = boundTo, threadId }: MessageFilter,
  { order, after: [after] = [] }: PageRequest,
): { where: FilterQuery<Message>; orderBy: QueryOrderMap<Message> } {
  const own: FilterQuery<Message> = { organizationId, environmentId };
  const [lowest, highest] =
    order === 'asc' ? [after ?? LOWEST_ID, HIGHEST_ID] : [LOWEST_ID, after ?? HIGHEST_ID];
  // A conversation has an index of its own.
  if (threadId !== undefined)
    return {
      where: {
        ...own,
        ...(inboxId === undefined ? {} : { inboxId }),
        threadId,
        id: { $gt: lowest, $lt: highest },
      },
      orderBy: { id: order },
    };
  const [column, value] = inboxId === undefined ? ['env_id', environmentId] : ['inbox_id', inboxId];
  const between = raw(
    (alias) => `(${alias}.${column}, ${alias}.id) > (?, ?) and (${alias}.${column}, ${alias}.id) < (?, ?)`,
    [value, lowest, value, highest],
  );
  return {
    where: { ...(inboxId === undefined ? { organizationId } : own), [between]: [] },
    orderBy: inboxId === undefined ? { environmentId: order, id: order } : { inboxId: order, id: order },
  };
}

async function searched(
  em: EntityManager,
  scope: Scope,
  filter: MessageFilter,
  page: PageRequest,
): Promise<Page<Message>> {
  const { items: ids, next } = await searchMessages(em, scope, filter, page);
  const messages = await em.find(MessageEntity, { id: { $in: ids }, ...withinScope(scope) });
  const byId = new Map(messages.map((message) => [message.id, message]));
  return { items: ids.map((id) => byId.get(id)).filter((message) => message !== undefined), next };
}

function listConditions(filter: MessageFilter): FilterQuery<Message>[] {
  const where: FilterQuery<Message>[] = [notHidden()];
  if (filter.direction) where.push({ direction: filter.direction });
  if (filter.status) where.push({ status: filter.status });
  if (filter.subject !== undefined) where.push({ subject: { $ilike: `%${escapeLike(filter.subject)}%` } });
  if (filter.hasAttachments !== undefined) where.push({ hasAttachments: filter.hasAttachments });
  if (filter.before) where.push({ createdAt: { $lt: filter.before } });
  if (filter.after) where.push({ createdAt: { $gte: filter.after } });
  return where;
}

/** Hidden mail is listed only where its label is asked for, and then it is searched for. */
export function notHidden(): FilterQuery<Message> {
  return { $not: { labels: { $overlap: [...HIDDEN_LABELS] } } };
}

/** Three statements for a whole page, however long it is. */
export async function withDetails(em: EntityManager, messages: Message[]): Promise<MessageDetails[]> {
  const ids = messages.map(({ id }) => id);
  if (ids.length === 0) return [];
  const recipients = await em.find(
    RecipientEntity,
    { messageId: { $in: ids } },
    { orderBy: { position: 'asc' } },
  );
  const withFiles = messages.filter(({ hasAttachments }) => hasAttachments).map(({ id }) => id);
  const attachments = withFiles.length
    ? await em.find(AttachmentEntity, { messageId: { $in: withFiles } }, { orderBy: { position: 'asc' } })
    : [];
  const recipientsOf = Map.groupBy(recipients, ({ messageId }) => messageId);
  const attachmentsOf = Map.groupBy(attachments, ({ messageId }) => messageId);
  return messages.map((message) => ({
    message,
    recipients: recipientsOf.get(message.id) ?? [],
    attachments: attachmentsOf.get(message.id) ?? [],
  }));
}

export async function withDetail(em: EntityManager, message: Message): Promise<MessageDetails> {
  const [details] = await withDetails(em, [message]);
  return details ?? { message, recipients: [], attachments: [] };
}
