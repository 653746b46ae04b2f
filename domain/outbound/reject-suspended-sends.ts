import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { RETRY_SEND_NOW, sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import type { EventService } from '../events/event.service.ts';
import { type Message, MessageEntity } from '../messages/message.entity.ts';
import { IS_SUSPENDED_FOR_ABUSE } from '../suspensions/abuse-suspension.ts';
import { rejectSuspended } from './prepare-send.ts';

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
  const messages = await lockSuspended(transaction.em, organizationId, after);
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

/** Locks the next unsent messages that a suspension for abuse affects. */
async function lockSuspended(em: EntityManager, organizationId: string, after: string): Promise<Message[]> {
  const rows = await em.execute<{ id: string }[]>(sql`
    select m.id from messages m join inboxes i on i.id = m.inbox_id join environments e on e.id = i.env_id
      join organizations o on o.id = i.org_id
    where m.org_id = ${organizationId} and m.status in ('queued', 'sending', 'deferred') and m.id > ${after}
      and ${IS_SUSPENDED_FOR_ABUSE}
    order by m.id limit ${BATCH_SIZE} for update of m`);
  if (rows.length === 0) return [];
  return em.find(MessageEntity, { id: { $in: rows.map(({ id }) => id) } }, { orderBy: { id: 'asc' } });
}
