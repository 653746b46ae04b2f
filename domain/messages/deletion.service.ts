import { LockMode, sql } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import {
  DELIVERY_OUTCOME_RECORDED,
  trackDeliveryWorkflowId,
} from '../../workflows/outbound/track-delivery.contract.ts';
import { type Scope, withinScope } from '../identity/scope.ts';
import { requireActiveInbox } from '../inboxes/find-inbox.ts';
import { type ForgetMessages, forgetMessages } from './forget-messages.ts';
import { type Message, MessageEntity, type MessageStatus } from './message.entity.ts';
import { refreshThread } from './refresh-thread.ts';
import { findThreadFamily, lockLivingThread, lockThreadOfMessage } from './resolve-thread.ts';
import { ThreadEntity } from './thread.entity.ts';

export interface DeletionService {
  /**
   * Deletes a message with its recipients, attachments and search entry. The sweep deletes its bytes unless another row
   * shares them. An empty thread is also deleted. Events about the message stay, without its content.
   *
   * @throws AppError `not_found`; `conflict` while the message is being sent.
   */
  deleteMessage(scope: Scope, messageId: string): Promise<void>;
  /**
   * Deletes a thread with all its messages, including hidden ones, and its aliases.
   *
   * @throws AppError `not_found`; `conflict` while one of its messages is being sent. Nothing is deleted in that case.
   */
  deleteThread(scope: Scope, threadId: string): Promise<void>;
}

/** The relay may have accepted the message or may still receive it, so its outcome needs the row. */
export const IN_FLIGHT_STATUSES: readonly MessageStatus[] = [
  'queued',
  'sending',
  'deferred',
  'needs_attention',
];
/** Any further `trackDelivery` runs of a long thread end after 5 days. */
const MAX_SIGNALED_RUNS = 500;

export function createDeletionService({
  database,
  outbox,
  events,
}: {
  database: Database;
  outbox: Outbox;
  events: ForgetMessages;
}): DeletionService {
  return {
    deleteMessage: (scope, messageId) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        // Lock the thread first, in the same order as code that adds messages.
        const thread = await lockThreadOfMessage(em, { id: messageId, ...withinScope(scope) });
        const message =
          thread &&
          (await em.findOne(MessageEntity, { id: messageId }, { lockMode: LockMode.PESSIMISTIC_WRITE }));
        if (!message) throw notFound('message', messageId);
        await requireActiveInbox(em, message.inboxId);
        if (IN_FLIGHT_STATUSES.includes(message.status)) throw messageInFlight(message);
        stopTracking(transaction, outbox, [message]);
        await forgetMessages(transaction, events, [message]);
        await em.nativeDelete(MessageEntity, { id: messageId });
        em.clear();
        await refreshOrDeleteThread(transaction, scope, thread.id);
      }),

    deleteThread: (scope, threadId) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const thread = await lockLivingThread(em, threadId, withinScope(scope));
        if (!thread) throw notFound('thread', threadId);
        await requireActiveInbox(em, thread.inboxId);
        const inThread = { threadId: { $in: await findThreadFamily(em, thread.id) } };
        const open = await em.findOne(
          MessageEntity,
          { ...inThread, status: { $in: [...IN_FLIGHT_STATUSES] } },
          { lockMode: LockMode.PESSIMISTIC_WRITE },
        );
        if (open) throw messageInFlight(open);
        const tracked = await em.find(
          MessageEntity,
          { ...inThread, tracked: true, status: 'sent' },
          { orderBy: { id: 'desc' }, limit: MAX_SIGNALED_RUNS },
        );
        stopTracking(transaction, outbox, tracked);
        em.clear();
        await forgetMessages(transaction, events, await lockMessages(transaction, inThread.threadId.$in));
        await em.nativeDelete(MessageEntity, inThread);
        await em.nativeDelete(ThreadEntity, { id: thread.id });
      }),
  };
}

/** Locks the messages of a thread and its aliases, in order of their ids. */
function lockMessages(
  { em }: Transaction,
  threadIds: readonly string[],
): Promise<Pick<Message, 'id' | 'draftId'>[]> {
  return em.execute(
    sql`select id, draft_id as "draftId" from messages where thread_id in (${threadIds}) order by id for update`,
  );
}

/** Deletes an empty thread, and refreshes the summary of any other. */
async function refreshOrDeleteThread({ em }: Transaction, scope: Scope, threadId: string): Promise<void> {
  const threadIds = await findThreadFamily(em, threadId);
  const remaining = await em.findOne(MessageEntity, { threadId: { $in: threadIds } }, { fields: ['id'] });
  if (!remaining) {
    await em.nativeDelete(ThreadEntity, { id: threadId });
    return;
  }
  const thread = await em.findOne(ThreadEntity, { id: threadId, ...withinScope(scope) });
  if (thread) await refreshThread(em, thread);
}

/** Ends the `trackDelivery` runs of deleted messages. */
export function stopTracking(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  messages: Pick<Message, 'id' | 'organizationId' | 'tracked' | 'status'>[],
): void {
  for (const { id, organizationId, tracked, status } of messages) {
    if (!tracked || status !== 'sent') continue;
    outbox.enqueue(transaction, organizationId, {
      signal: {
        workflowId: trackDeliveryWorkflowId(id),
        signalName: DELIVERY_OUTCOME_RECORDED,
        args: [{ openRecipients: 0 }],
      },
    });
  }
}

function messageInFlight({ id, status }: Message): AppError {
  return new AppError('conflict', {
    detail: `The message ${id} is ${status}: it may still be transmitted.`,
    fix:
      status === 'needs_attention'
        ? 'Resolve its outcome first (update resolveAmbiguous in the Temporal UI), then delete it.'
        : 'Cancel it, or wait until it is sent, then delete it.',
    extensions: { message_status: status },
  });
}
