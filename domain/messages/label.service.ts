import { LockMode } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { EventService } from '../events/event.service.ts';
import { type Scope, withinScope } from '../identity/scope.ts';
import { requireActiveInbox } from '../inboxes/find-inbox.ts';
import { announceReceived } from './announce-received.ts';
import { isHidden, rejectServiceLabels } from './hidden-labels.ts';
import { type Message, MessageEntity } from './message.entity.ts';
import { loadDetails, type MessageDetails } from './message-details.ts';
import { refreshThread } from './refresh-thread.ts';
import { lockThreadOfMessage } from './resolve-thread.ts';
import type { Thread } from './thread.entity.ts';

export interface LabelService {
  /**
   * Adds labels to the existing ones. `spam` hides the message.
   *
   * @throws AppError `not_found`, `inbox_suspended`; `unprocessable` over {@link MAX_MESSAGE_LABELS} and for labels that
   * only the service adds.
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
      const locked = await lockMessage(transaction, scope, messageId);
      const { message } = locked;
      await requireActiveInbox(transaction.em, message.inboxId);
      await setLabels(transaction, events, locked, change(message.labels));
      return loadDetails(transaction.em, message);
    });
  return {
    add: (scope, messageId, labels) =>
      changeLabels(scope, messageId, (present) => {
        rejectServiceLabels(labels);
        return requireLabelLimit([...new Set([...present, ...labels])]);
      }),
    remove: (scope, messageId, labels) =>
      changeLabels(scope, messageId, (present) => present.filter((label) => !labels.includes(label))),
  };
}

interface LockedMessage {
  message: Message;
  thread: Thread;
}

/** Locks the thread first, in the same order as code that adds messages. */
async function lockMessage({ em }: Transaction, scope: Scope, messageId: string): Promise<LockedMessage> {
  const thread = await lockThreadOfMessage(em, { id: messageId, ...withinScope(scope) });
  const message = thread
    ? await em.findOne(
        MessageEntity,
        { id: messageId },
        {
          populate: ['textBody', 'htmlBody', 'extractedText', 'hiddenText', 'headers'],
          lockMode: LockMode.PESSIMISTIC_WRITE,
        },
      )
    : null;
  if (!message || !thread) throw notFound('message', messageId);
  return { message, thread };
}

async function setLabels(
  transaction: Transaction,
  events: EventService,
  { message, thread }: LockedMessage,
  labels: string[],
): Promise<void> {
  const { em } = transaction;
  if (labels.length === message.labels.length) return;
  message.labels = labels;
  if (message.direction === 'inbound' && !message.announced && !isHidden(labels))
    await announceReceived(transaction, events, message);
  await em.flush();
  await refreshThread(em, thread);
}

function requireLabelLimit(labels: string[]): string[] {
  if (labels.length <= MAX_MESSAGE_LABELS) return labels;
  throw new AppError('unprocessable', {
    detail: `The message would have ${labels.length} labels; at most ${MAX_MESSAGE_LABELS} are allowed.`,
    fix: 'Remove labels from the message first.',
  });
}
