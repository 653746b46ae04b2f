import { sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import {
  CANCEL_DELIVERY,
  deliverWebhookWorkflowId,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { createEventService, type EventService } from '../events/event.service.ts';
import { addDeliveries } from './add-deliveries.ts';
import { PURGED } from './delivery-state.ts';

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
    async addDeliveries(transaction, event, endpoints) {
      const added = endpoints.map((endpoint) => ({ event, endpoint }));
      await addDeliveries(transaction, outbox, added);
    },
    redactDeliveries: (transaction, eventIds) => redactDeliveries(transaction, outbox, eventIds),
  });
}

/**
 * Extends the redaction of events to their deliveries, in the caller's transaction. Waiting deliveries of
 * `message.received` are canceled, because the message no longer exists; other deliveries are sent without content.
 * Responses of receivers are removed, because they may repeat the content.
 *
 * The lock on a delivery lets an attempt that has read the event open its row first; only requests that are already
 * being sent contain the content.
 */
async function redactDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  eventIds: readonly string[],
): Promise<void> {
  const { db } = transaction;
  await db
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('event_id', '=', anyOf(eventIds))
    .orderBy('id')
    .forNoKeyUpdate()
    .execute();
  for (const { id, organizationId, generation, hasRun } of await cancelAnnouncements(db, eventIds)) {
    if (!hasRun) continue;
    outbox.enqueue(transaction, organizationId, {
      signal: { workflowId: deliverWebhookWorkflowId(id, generation), signalName: CANCEL_DELIVERY, args: [] },
    });
  }
  await db
    .updateTable('webhook_delivery_attempts')
    .set({
      redacted: true,
      response_body: sql`case when response_body is not null then '' end`,
      response_headers: null,
    })
    .where('delivery_id', 'in', (eb) =>
      eb.selectFrom('webhook_deliveries').select('id').where('event_id', '=', anyOf(eventIds)),
    )
    .execute();
}

/** Cancels the waiting deliveries of `message.received`. A held delivery has no run. */
function cancelAnnouncements(db: Db, eventIds: readonly string[]) {
  return db
    .updateTable('webhook_deliveries as d')
    .from(
      db
        .selectFrom('webhook_deliveries as w')
        .innerJoin('events as v', 'v.id', 'w.event_id')
        .select(['w.id', 'w.status'])
        .where('w.event_id', '=', anyOf(eventIds))
        .where('v.type', '=', 'message.received')
        .where('w.status', 'in', ['pending', 'held'])
        .as('waiting'),
    )
    .set({
      status: 'canceled',
      held_for: null,
      last_error: PURGED,
      next_attempt_at: null,
      completed_at: sql`now()`,
    })
    .whereRef('d.id', '=', 'waiting.id')
    .returning([
      'd.id',
      'd.org_id as organizationId',
      'd.generation',
      sql<boolean>`waiting.status = 'pending'`.as('hasRun'),
    ])
    .execute();
}
