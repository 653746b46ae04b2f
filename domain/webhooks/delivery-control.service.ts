import type { Updateable } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import {
  CANCEL_DELIVERY,
  deliverWebhookWorkflowId,
  RETRY_DELIVERY_NOW,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import type { Event } from '../events/event.entity.ts';
import { createTestEvent } from '../events/event.service.ts';
import { findEventHolds, NOT_HELD } from '../events/event-suspension.ts';
import type { EventType } from '../events/event-types.ts';
import type { Scope } from '../identity/scope.ts';
import { addDeliveries, buildDeliveryStart } from './add-deliveries.ts';
import {
  type DeliveryAttempt,
  DeliveryAttemptEntity,
  type DeliveryStatus,
  type WebhookDelivery,
  WebhookDeliveryEntity,
} from './delivery.entity.ts';
import { type DeliveryRequest, describeDeliveryRequest } from './delivery-request.ts';
import { isWithdrawn } from './delivery-state.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';
import { isFailing, requestProbe } from './endpoint-health.ts';
import { endpointsInScope, findEndpoint, requireEnabled } from './find-endpoint.ts';
import { restartDeliveries } from './restart-deliveries.ts';
import { buildSampleData } from './sample-data.ts';

type DeliveryEvent = Pick<Event, 'id' | 'type' | 'redacted' | 'test' | 'environmentId' | 'inboxId'>;

/** A delivery and the event it carries. */
export interface DeliveryDetails {
  delivery: WebhookDelivery;
  event: DeliveryEvent;
}

export interface DeliveryWithAttempts extends DeliveryDetails {
  attempts: DeliveryAttempt[];
  request: DeliveryRequest;
}

export interface DeliveryFilter {
  status?: DeliveryStatus | undefined;
  eventType?: EventType | undefined;
}

export type DeliveryControlService = ReturnType<typeof createDeliveryControlService>;

export function createDeliveryControlService({ database, outbox }: { database: Database; outbox: Outbox }) {
  return {
    /** @throws AppError `not_found`. */
    list: (
      scope: Scope,
      endpointId: string,
      filter: DeliveryFilter,
      page: PageRequest,
    ): Promise<Page<DeliveryDetails>> =>
      database.read(scope, async ({ db }) => {
        await findEndpoint(db, scope, endpointId);
        const { items, next } = await findPage(selectDeliveries(db, endpointId, filter), 'd.id', page);
        return { items: await attachEvents(db, items), next };
      }),

    /** Includes the attempts, oldest first. Works for deleted endpoints too. @throws AppError `not_found`. */
    get: (scope: Scope, deliveryId: string): Promise<DeliveryWithAttempts> =>
      database.read(scope, async ({ db }) => {
        const delivery = await selectDelivery(db, scope, deliveryId).executeTakeFirst();
        const endpoint = delivery && (await findEndpointOf(db, scope, delivery));
        if (!endpoint) throw notFound('webhook delivery', deliveryId);
        const attempts = await db
          .selectFrom('webhook_delivery_attempts')
          .select(columnsOf(DeliveryAttemptEntity))
          .where('delivery_id', '=', deliveryId)
          .orderBy('number')
          .execute();
        const details = await attachEvent(db, delivery);
        return { ...details, attempts, request: describeDeliveryRequest(details.event, endpoint) };
      }),

    /**
     * Makes the next attempt now, in any status of the delivery. The run of a pending delivery is woken; any other
     * delivery restarts with the full schedule and the same event. While the endpoint is failing, the delivery is held
     * and the probe attempts it before older deliveries.
     *
     * @throws AppError `not_found`; `conflict` if the endpoint is disabled or deleted, or the announced message was
     * deleted.
     */
    retry: (scope: Scope, deliveryId: string): Promise<DeliveryDetails> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const { delivery, endpoint } = await lockInScope(db, scope, deliveryId);
        if (endpoint.deletedAt) throw endpointDeleted(endpoint);
        requireEnabled(endpoint);
        const details = await attachEvent(db, delivery);
        if (isWithdrawn(details.event)) throw messageDeleted(delivery);
        if (delivery.status === 'pending') {
          wakeRun(transaction, outbox, details);
          return details;
        }
        const retried = isFailing(endpoint)
          ? await makeNext(transaction, outbox, delivery)
          : await restart(transaction, outbox, delivery);
        return { ...details, delivery: retried };
      }),

    /**
     * Cancels a pending or held delivery. An attempt in progress finishes and is recorded.
     *
     * @throws AppError `not_found`; `conflict` if the delivery already has another final status.
     */
    cancel: (scope: Scope, deliveryId: string): Promise<DeliveryDetails> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const { delivery } = await lockInScope(db, scope, deliveryId);
        const canceled =
          delivery.status === 'canceled' ? delivery : await cancelWaiting(transaction, outbox, delivery);
        return attachEvent(db, canceled);
      }),

    /**
     * Sends a test event with sample data to this endpoint only.
     *
     * @param eventType any type, subscribed to or not; by default the first type the endpoint subscribes to.
     * @throws AppError `not_found`; `conflict` if the endpoint is disabled.
     */
    sendTest: (
      scope: Scope,
      endpointId: string,
      eventType: EventType | undefined,
    ): Promise<DeliveryDetails> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const endpoint = await findEndpoint(db, scope, endpointId);
        requireEnabled(endpoint);
        const event = await createEndpointTest(db, endpoint, eventType);
        const waits = endpoint.holdingSince !== null && isFailing(endpoint);
        const holds = await findEventHolds(db, event.organizationId, [event.id]);
        const hold = holds.get(event.id) ?? NOT_HELD;
        const [delivery] = await addDeliveries(transaction, outbox, [
          { event, endpoint: { ...endpoint, isHolding: waits, ...hold } },
        ]);
        if (!delivery) throw new Error('The delivery was not stored');
        if (delivery.heldFor !== 'endpoint_failing') return { delivery, event };
        return { delivery: await makeNext(transaction, outbox, delivery), event };
      }),
  };
}

function selectDeliveries(db: Db, endpointId: string, { status, eventType }: DeliveryFilter) {
  return db
    .selectFrom('webhook_deliveries as d')
    .select(columnsOf(WebhookDeliveryEntity, { from: 'd' }))
    .where('d.endpoint_id', '=', endpointId)
    .$if(status !== undefined, (query) => query.where('d.status', '=', status as DeliveryStatus))
    .$if(eventType !== undefined, (query) =>
      query.where(({ exists, selectFrom }) =>
        exists(
          selectFrom('events as e')
            .select('e.id')
            .whereRef('e.id', '=', 'd.event_id')
            .where('e.type', '=', eventType as EventType),
        ),
      ),
    );
}

const selectDelivery = (db: Db, { organizationId }: Scope, deliveryId: string) =>
  db
    .selectFrom('webhook_deliveries')
    .select(columnsOf(WebhookDeliveryEntity))
    .where('id', '=', deliveryId)
    .where('org_id', '=', organizationId);

/** Finds the endpoint of a delivery within the scope, even if the endpoint is deleted. */
const findEndpointOf = (db: Db, scope: Scope, { endpointId }: WebhookDelivery) =>
  endpointsInScope(db, scope).where('id', '=', endpointId).executeTakeFirst();

async function lockInScope(
  db: Db,
  scope: Scope,
  deliveryId: string,
): Promise<{ delivery: WebhookDelivery; endpoint: WebhookEndpoint }> {
  const delivery = await selectDelivery(db, scope, deliveryId).forUpdate().executeTakeFirst();
  const endpoint = delivery && (await findEndpointOf(db, scope, delivery));
  if (!endpoint) throw notFound('webhook delivery', deliveryId);
  return { delivery, endpoint };
}

function createEndpointTest(
  db: Db,
  { organizationId, environmentId, events, inboxIds }: WebhookEndpoint,
  eventType: EventType | undefined,
): Promise<Event> {
  const createdAt = new Date();
  const type = eventType ?? events[0] ?? 'message.received';
  const inboxId = inboxIds?.[0] ?? null;
  const data = buildSampleData(type, { inboxId: inboxId ?? newId('inbox'), time: createdAt });
  return createTestEvent(db, { organizationId, environmentId, inboxId, type, data, createdAt });
}

async function attachEvents(db: Db, deliveries: readonly WebhookDelivery[]): Promise<DeliveryDetails[]> {
  const ids = deliveries.map(({ eventId }) => eventId);
  const events = ids.length === 0 ? [] : await readDeliveryEvents(db, ids);
  const byId = new Map(events.map((event) => [event.id, event]));
  return deliveries.flatMap((delivery) => {
    const event = byId.get(delivery.eventId);
    return event ? [{ delivery, event }] : [];
  });
}

async function attachEvent(db: Db, delivery: WebhookDelivery): Promise<DeliveryDetails> {
  const [event] = await readDeliveryEvents(db, [delivery.eventId]);
  if (!event) throw new Error(`Delivery ${delivery.id} has no event`);
  return { delivery, event };
}

/** Omits `data`, because a page of deliveries would otherwise load megabytes of message text. */
function readDeliveryEvents(db: Db, ids: readonly string[]): Promise<DeliveryEvent[]> {
  return db
    .selectFrom('events')
    .select(['id', 'type', 'redacted', 'test', 'env_id as environmentId', 'inbox_id as inboxId'])
    .where('id', '=', anyOf(ids))
    .execute();
}

/** Signal-with-start: if an operator ended the run, a new one is started, because the row is still pending. */
function wakeRun(transaction: Transaction, outbox: Outbox, { delivery, event }: DeliveryDetails): void {
  const start = buildDeliveryStart({
    ...delivery,
    environmentId: event.environmentId,
    inboxId: event.inboxId,
    eventType: event.type,
  });
  outbox.enqueue(transaction, delivery.organizationId, {
    start,
    signal: { workflowId: start.workflowId, signalName: RETRY_DELIVERY_NOW, args: [] },
  });
}

/** Holds the delivery for the failing endpoint's probe, which attempts it next. */
async function makeNext(
  transaction: Transaction,
  outbox: Outbox,
  { id, status, heldFor, attempts, endpointId }: WebhookDelivery,
): Promise<WebhookDelivery> {
  const isWaiting = status === 'held' && heldFor === 'endpoint_failing';
  const delivery = await changeDelivery(transaction.db, id, {
    status: 'held',
    held_for: 'endpoint_failing',
    next_attempt_at: new Date(),
    ...(isWaiting ? {} : { prior_attempts: attempts, completed_at: null, reconciled_at: null }),
  });
  await requestProbe(transaction, outbox, endpointId);
  return delivery;
}

async function restart(
  transaction: Transaction,
  outbox: Outbox,
  { id }: WebhookDelivery,
): Promise<WebhookDelivery> {
  const { db } = transaction;
  const selection = db.selectFrom('webhook_deliveries').select('id').where('id', '=', id);
  await restartDeliveries(transaction, outbox, { selection, mode: 'start' });
  return db
    .selectFrom('webhook_deliveries')
    .select(columnsOf(WebhookDeliveryEntity))
    .where('id', '=', id)
    .executeTakeFirstOrThrow(() => notFound('webhook delivery', id));
}

async function cancelWaiting(
  transaction: Transaction,
  outbox: Outbox,
  { id, generation, status, organizationId }: WebhookDelivery,
): Promise<WebhookDelivery> {
  if (status !== 'pending' && status !== 'held')
    throw new AppError('conflict', {
      detail: `The delivery ${id} is ${status}; only a pending or held delivery can be canceled.`,
      fix: 'There is nothing to cancel, but it can be delivered again: POST /api/v1/webhooks/deliveries/{id}/retry.',
    });
  if (status === 'pending')
    outbox.enqueue(transaction, organizationId, {
      signal: { workflowId: deliverWebhookWorkflowId(id, generation), signalName: CANCEL_DELIVERY, args: [] },
    });
  return changeDelivery(transaction.db, id, {
    status: 'canceled',
    last_error: 'Canceled through the API.',
    next_attempt_at: null,
    completed_at: new Date(),
  });
}

function changeDelivery(
  db: Db,
  id: string,
  change: Updateable<Tables['webhook_deliveries']>,
): Promise<WebhookDelivery> {
  return db
    .updateTable('webhook_deliveries')
    .set(change)
    .where('id', '=', id)
    .returning(columnsOf(WebhookDeliveryEntity))
    .executeTakeFirstOrThrow(() => notFound('webhook delivery', id));
}

function messageDeleted({ id }: WebhookDelivery): AppError {
  return new AppError('conflict', {
    detail: `The delivery ${id} announced a message that was deleted.`,
    fix: 'There is nothing to deliver any more.',
  });
}

function endpointDeleted({ id }: WebhookEndpoint): AppError {
  return new AppError('conflict', {
    detail: `The endpoint ${id} was deleted.`,
    fix: 'Create a new endpoint (POST /api/v1/webhooks/endpoints) and replay the events to it (POST /api/v1/webhooks/endpoints/{id}/replay).',
  });
}
