import { LockMode } from '@mikro-orm/core';
import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { CANCEL_SEND, sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import { MessageEntity } from '../messages/message.entity.ts';
import { cancelUnsentMessage } from './cancel-unsent.ts';

const BATCH_SIZE = 200;

/** Cancels the queued messages of an inbox that is being deleted. Messages already handed to the relay continue. */
export async function cancelUnsentOfInbox(
  transaction: Transaction,
  outbox: Outbox,
  inboxId: string,
): Promise<void> {
  const { em } = transaction;
  for (let after = ''; ; ) {
    const messages = await em.find(
      MessageEntity,
      { inboxId, status: { $in: ['queued', 'sending', 'deferred'] }, id: { $gt: after } },
      { orderBy: { id: 'asc' }, limit: BATCH_SIZE, lockMode: LockMode.PESSIMISTIC_WRITE },
    );
    for (const message of messages) {
      if (!(await cancelUnsentMessage(em, message, 'The inbox was deleted.'))) continue;
      outbox.enqueue(transaction, message.organizationId, {
        signal: { workflowId: sendMessageWorkflowId(message.id), signalName: CANCEL_SEND, args: [] },
      });
    }
    const last = messages.at(-1);
    if (!last || messages.length < BATCH_SIZE) return;
    after = last.id;
  }
}
