import { sql } from '@mikro-orm/core';
import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import {
  CANCEL_DELIVERY,
  deliverWebhookWorkflowId,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { createEventService, type EventService } from '../events/event.service.ts';
import { addDelivery } from './add-delivery.ts';
import { PURGED } from './attempt-outcome.ts';

/** The event service that delivers events to the webhook endpoints subscribed to them. */
export function createWebhookEvents({
  outbox,
  onRecorded,
}: {
  outbox: Outbox;
  onRecorded?: ((type: string) => void) | undefined;
}): EventService {
  return createEventService({
    onRecorded,
    addDelivery: (transaction, event, endpoint) => {
      addDelivery(transaction, outbox, event, endpoint);
    },
    redactDeliveries: (transaction, eventIds) => redactDeliveries(transaction, outbox, eventIds),
  });
}

/**
 * Follows the redaction of events in the caller's transaction. Cancels the deliveries of `message.received` that wait: there is
 * nothing left to act on. The others go out without content. What receivers answered may repeat it, and is removed.
 *
 * The lock on a delivery lets an attempt that has read the event open its row first; only requests already on their way
 * still carry the content.
 */
async function redactDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  eventIds: readonly string[],
): Promise<void> {
  const { em } = transaction;
  await em.execute(
    sql`select id from webhook_deliveries where event_id in (${eventIds}) order by id for no key update`,
  );
  const canceled = await em.execute<CanceledDelivery[]>(sql`
    update webhook_deliveries d
    set status = 'canceled', held_for = null, last_error = ${PURGED}, next_attempt_at = null, completed_at = now()
    from (
      select w.id, w.status from webhook_deliveries w join events v on v.id = w.event_id
      where w.event_id in (${eventIds}) and v.type = 'message.received' and w.status in ('pending', 'held')) waiting
    where d.id = waiting.id
    returning d.id, d.org_id as "organizationId", d.episode, waiting.status = 'pending' as "hasRun"`);
  for (const { id, organizationId, episode, hasRun } of canceled) {
    if (!hasRun) continue;
    outbox.enqueue(transaction, organizationId, {
      signal: { workflowId: deliverWebhookWorkflowId(id, episode), signalName: CANCEL_DELIVERY, args: [] },
    });
  }
  await em.execute(sql`
    update webhook_delivery_attempts
    set redacted = true, response_body = case when response_body is not null then '' end
    where delivery_id in (select id from webhook_deliveries where event_id in (${eventIds}))`);
}

interface CanceledDelivery {
  id: string;
  organizationId: string;
  episode: number;
  /** A held delivery has no run. */
  hasRun: boolean;
}
