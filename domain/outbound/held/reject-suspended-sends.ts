import { LockMode } from '@mikro-orm/core';
import type { Transaction } from '../../../platform/database/database.ts';
import type { Outbox } from '../../../platform/outbox/outbox.ts';
import { RETRY_SEND_NOW, sendMessageWorkflowId } from '../../../workflows/outbound/send-message.contract.ts';
import type { EventService } from '../../events/event.service.ts';
import { MessageEntity } from '../../messages/message.entity.ts';
import { rejectSuspended } from '../prepare-send.ts';

/** Each rejection takes several statements, and its event may start deliveries. */
const BATCH_SIZE = 50;

export interface RejectedBatch {
  rejected: number;
  /** Where the next batch begins; null if there is none. */
  last: string | null;
}

/**
 * Rejects a batch of accepted messages that a suspension for abuse affects, with their events. A run that waits for its next
 * attempt ends.
 */
export async function rejectSuspendedSends(
  transaction: Transaction,
  { events, outbox }: { events: EventService; outbox: Pick<Outbox, 'enqueue'> },
  { organizationId, after }: { organizationId: string; after: string },
): Promise<RejectedBatch> {
  const messages = await transaction.em.find(
    MessageEntity,
    { organizationId, status: { $in: ['queued', 'sending', 'deferred'] }, id: { $gt: after } },
    { orderBy: { id: 'asc' }, limit: BATCH_SIZE, lockMode: LockMode.PESSIMISTIC_WRITE },
  );
  let rejected = 0;
  for (const message of messages) {
    if (!(await rejectSuspended(transaction, events, message))) continue;
    rejected += 1;
    outbox.enqueue(transaction, organizationId, {
      signal: { workflowId: sendMessageWorkflowId(message.id), signalName: RETRY_SEND_NOW, args: [] },
    });
  }
  const last = messages.length < BATCH_SIZE ? null : (messages.at(-1)?.id ?? null);
  return { rejected, last };
}
