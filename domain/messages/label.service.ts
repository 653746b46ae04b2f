import { LockMode } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { EventService } from '../events/event.service.ts';
import { type Scope, withinScope } from '../identity/scope.ts';
import { announceReceived } from './announce-received.ts';
import { isHidden } from './hidden-labels.ts';
import { type Message, MessageEntity } from './message.entity.ts';
import { loadDetails, type MessageDetails } from './message-details.ts';
import { refreshThread } from './refresh-thread.ts';
import { ThreadEntity } from './thread.entity.ts';

export interface LabelService {
  /**
   * Adds labels to the existing ones. `spam` and `blocked` hide the message.
   *
   * @throws AppError `not_found`, `unprocessable` over {@link MAX_MESSAGE_LABELS}.
   */
  add(scope: Scope, messageId: string, labels: string[]): Promise<MessageDetails>;
  /**
   * Removes labels; labels that the message does not have are ignored. A received message that becomes visible for the
   * first time gets its `message.received` event.
   *
   * @throws AppError `not_found`.
   */
  remove(scope: Scope, messageId: string, labels: string[]): Promise<MessageDetails>;
}

const MAX_MESSAGE_LABELS = 100;

export function createLabelService({
  database,
  events,
}: {
  database: Database;
  events: EventService;
}): LabelService {
  const changeLabels = (scope: Scope, messageId: string, change: (labels: string[]) => string[]) =>
    database.transaction(scope, async (transaction) => {
      const message = await lockMessage(transaction, scope, messageId);
      await setLabels(transaction, events, message, change(message.labels));
      return loadDetails(transaction.em, message);
    });
  return {
    add: (scope, messageId, labels) =>
      changeLabels(scope, messageId, (present) => requireLabelLimit([...new Set([...present, ...labels])])),
    remove: (scope, messageId, labels) =>
      changeLabels(scope, messageId, (present) => present.filter((label) => !labels.includes(label))),
  };
}

/** Locks the thread first, in the same order as code that adds messages. */
async function lockMessage({ em }: Transaction, scope: Scope, messageId: string): Promise<Message> {
  const located = await em.findOne(
    MessageEntity,
    { id: messageId, ...withinScope(scope) },
    { fields: ['threadId'], disableIdentityMap: true },
  );
  if (located)
    await em.findOne(ThreadEntity, { id: located.threadId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
  const message = located
    ? await em.findOne(
        MessageEntity,
        { id: messageId },
        {
          populate: ['textBody', 'htmlBody', 'extractedText', 'headers'],
          lockMode: LockMode.PESSIMISTIC_WRITE,
        },
      )
    : null;
  if (!message) throw notFound('message', messageId);
  return message;
}

async function setLabels(
  transaction: Transaction,
  events: EventService,
  message: Message,
  labels: string[],
): Promise<void> {
  const { em } = transaction;
  if (labels.length === message.labels.length) return;
  message.labels = labels;
  if (message.direction === 'inbound' && !message.announced && !isHidden(labels))
    await announceReceived(transaction, events, message);
  await em.flush();
  const thread = await em.findOne(ThreadEntity, { id: message.threadId });
  if (thread) await refreshThread(em, thread);
}

function requireLabelLimit(labels: string[]): string[] {
  if (labels.length <= MAX_MESSAGE_LABELS) return labels;
  throw new AppError('unprocessable', {
    detail: `The message would have ${labels.length} labels; at most ${MAX_MESSAGE_LABELS} are allowed.`,
    fix: 'Remove labels from the message first.',
  });
}
