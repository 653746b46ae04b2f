import { type FilterQuery, LockMode, raw, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findRow, findRows, queryRows, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { joinSql } from '../../platform/database/sql.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { type Page, type PageRequest, toPage } from '../../platform/pagination.ts';
import {
  CANCEL_DELIVERY,
  deliverWebhookWorkflowId,
  RETRY_DELIVERY_NOW,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { createTestEvent } from '../events/create-test-event.ts';
import type { Event } from '../events/event.entity.ts';
import { findEventHolds, NOT_HELD } from '../events/event-suspension.ts';
import type { EventType } from '../events/event-types.ts';
import type { Scope } from '../identity/scope.ts';
import { addDelivery } from './add-delivery.ts';
import { HELD_WHILE_FAILING, isWithdrawn } from './attempt-outcome.ts';
import { type DeliveryStatus, type WebhookDelivery, WebhookDeliveryEntity } from './delivery.entity.ts';
import { type DeliveryAttempt, DeliveryAttemptEntity } from './delivery-attempt.entity.ts';
import { buildDeliveryStart } from './delivery-start.ts';
import { type WebhookEndpoint, WebhookEndpointEntity } from './endpoint.entity.ts';
import { isFailing, requestProbe } from './endpoint-health.ts';
import { endpointsInScope, findEndpoint, readEndpoint, requireEnabled } from './find-endpoint.ts';
import { restartDeliveries } from './restart-deliveries.ts';
import { buildSampleData } from './sample-data.ts';

type DeliveryEvent = Pick<Event, 'id' | 'type' | 'redacted' | 'test' | 'environmentId' | 'inboxId'>;

/** A delivery and the event it carries. */
export interface DeliveryDetails {
  delivery: Row<WebhookDelivery>;
  event: DeliveryEvent;
}

export interface DeliveryFilter {
  status?: DeliveryStatus | undefined;
  eventType?: EventType | undefined;
}

export interface DeliveryControlService {
  /** @throws AppError `not_found`. */
  list(
    scope: Scope,
    endpointId: string,
    filter: DeliveryFilter,
    page: PageRequest,
  ): Promise<Page<DeliveryDetails>>;
  /** Includes the attempts, oldest first. Works for deleted endpoints too. @throws AppError `not_found`. */
  get(scope: Scope, deliveryId: string): Promise<DeliveryDetails & { attempts: Row<DeliveryAttempt>[] }>;
  /**
   * Makes the next attempt now, whatever the delivery's status. The run of a pending delivery is woken; any other delivery
   * restarts with the full schedule and the same event. While the endpoint is failing, the delivery is held and its
   * probe makes the attempt, before that of older ones.
   *
   * @throws AppError `not_found`; `conflict` if the endpoint is disabled or deleted, or the announced message was deleted.
   */
  retry(scope: Scope, deliveryId: string): Promise<DeliveryDetails>;
  /**
   * Cancels a pending or held delivery. An attempt in progress finishes and is recorded.
   *
   * @throws AppError `not_found`; `conflict` if the delivery already has another final status.
   */
  cancel(scope: Scope, deliveryId: string): Promise<DeliveryDetails>;
  /**
   * Sends a test event with sample data to this endpoint only.
   *
   * @param eventType any type, subscribed to or not; by default the first type the endpoint subscribes to.
   * @throws AppError `not_found`; `conflict` if the endpoint is disabled.
   */
  sendTest(scope: Scope, endpointId: string, eventType: EventType | undefined): Promise<DeliveryDetails>;
}

export function createDeliveryControlService({
  database,
  outbox,
}: {
  database: Database;
  outbox: Outbox;
}): DeliveryControlService {
  return {
    list: (scope, endpointId, filter, page) =>
      database.read(scope, async (reader) => {
        await readEndpoint(reader, scope, endpointId);
        const rows = await findDeliveries(reader, { endpointId, filter, page });
        const { items, next } = toPage(rows, page.limit, ({ id }) => [id]);
        return { items: await attachEvents(reader, items), next };
      }),

    get: (scope, deliveryId) =>
      database.read(scope, async (reader) => {
        const delivery = await readDelivery(reader, scope, deliveryId);
        const attempts = await findRows(reader, DeliveryAttemptEntity, {
          where: { deliveryId },
          orderBy: { number: 'asc' },
        });
        return { ...(await attachEvent(reader, delivery)), attempts };
      }),

    retry: (scope, deliveryId) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const { delivery, endpoint } = await findDelivery(em, scope, deliveryId, LockMode.PESSIMISTIC_WRITE);
        if (endpoint.deletedAt) throw endpointDeleted(endpoint);
        requireEnabled(endpoint);
        const details = await attachEvent(em, delivery);
        if (isWithdrawn(details.event)) throw messageDeleted(delivery);
        if (delivery.status === 'pending') wakeRun(transaction, outbox, details);
        else if (isFailing(endpoint)) await makeNext(transaction, outbox, delivery);
        else {
          await restartDeliveries(transaction, outbox, {
            selection: sql`select ${deliveryId}::text`,
            mode: 'start',
          });
          await em.refresh(delivery);
        }
        return details;
      }),

    cancel: (scope, deliveryId) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const { delivery } = await findDelivery(em, scope, deliveryId, LockMode.PESSIMISTIC_WRITE);
        if (delivery.status !== 'canceled') cancelDelivery(transaction, outbox, delivery);
        return attachEvent(em, delivery);
      }),

    sendTest: (scope, endpointId, eventType) =>
      database.transaction(scope, async (transaction) => {
        const { db, em } = transaction;
        const endpoint = await findEndpoint(em, scope, endpointId);
        requireEnabled(endpoint);
        const createdAt = new Date();
        const type = eventType ?? endpoint.events[0] ?? 'message.received';
        const inboxId = endpoint.inboxIds?.[0] ?? null;
        const event = await createTestEvent(transaction.db, {
          organizationId: endpoint.organizationId,
          environmentId: endpoint.environmentId,
          inboxId,
          type,
          data: buildSampleData(type, { inboxId: inboxId ?? newId('inbox'), time: createdAt }),
          createdAt,
        });
        const waits = endpoint.holdingSince !== null && isFailing(endpoint);
        const holds = await findEventHolds(db, event.organizationId, [event.id]);
        const hold = holds.get(event.id) ?? NOT_HELD;
        const delivery = addDelivery(transaction, outbox, event, { ...endpoint, isHolding: waits, ...hold });
        if (delivery.heldFor === 'endpoint_failing') await makeNext(transaction, outbox, delivery);
        return { delivery, event };
      }),
  };
}

interface DeliveryQuery {
  endpointId: string;
  filter: DeliveryFilter;
  page: PageRequest;
}

function findDeliveries(
  reader: RowReader,
  { endpointId, filter, page }: DeliveryQuery,
): Promise<Row<WebhookDelivery>[]> {
  const conditions = [sql`d.endpoint_id = ${endpointId}`];
  if (filter.status) conditions.push(sql`d.status = ${filter.status}`);
  if (filter.eventType)
    conditions.push(
      sql`exists (select from events e where e.id = d.event_id and e.type = ${filter.eventType})`,
    );
  const [after] = page.after ?? [];
  if (after !== undefined)
    conditions.push(page.order === 'asc' ? sql`d.id > ${after}` : sql`d.id < ${after}`);
  return queryRows(
    reader,
    WebhookDeliveryEntity,
    (columns) => sql`select ${columns} from webhook_deliveries d where ${joinSql(conditions, ' and ')}
      order by d.id ${raw(page.order)} limit ${page.limit + 1}`,
  );
}

async function readDelivery(
  reader: RowReader,
  scope: Scope,
  deliveryId: string,
): Promise<Row<WebhookDelivery>> {
  const { organizationId } = scope;
  const delivery = await findRow(reader, WebhookDeliveryEntity, {
    where: { id: deliveryId, organizationId },
  });
  const endpoint =
    delivery &&
    (await findRow(reader, WebhookEndpointEntity, {
      where: [{ id: delivery.endpointId }, endpointsInScope(scope)],
    }));
  if (!endpoint) throw notFound('webhook delivery', deliveryId);
  return delivery;
}

async function findDelivery(
  em: EntityManager,
  scope: Scope,
  deliveryId: string,
  lockMode: LockMode.PESSIMISTIC_WRITE,
): Promise<{ delivery: WebhookDelivery; endpoint: WebhookEndpoint }> {
  const { organizationId } = scope;
  const where: FilterQuery<WebhookDelivery> = { id: deliveryId, organizationId };
  const delivery = await em.findOne(WebhookDeliveryEntity, where, { lockMode });
  const endpoint =
    delivery &&
    (await em.findOne(WebhookEndpointEntity, {
      $and: [{ id: delivery.endpointId }, endpointsInScope(scope)],
    }));
  if (!delivery || !endpoint) throw notFound('webhook delivery', deliveryId);
  return { delivery, endpoint };
}

async function attachEvents(
  reader: RowReader,
  deliveries: Row<WebhookDelivery>[],
): Promise<DeliveryDetails[]> {
  const ids = deliveries.map(({ eventId }) => eventId);
  const events = ids.length === 0 ? [] : await readDeliveryEvents(reader, ids);
  const byId = new Map<string, DeliveryEvent>(events.map((event) => [event.id, event]));
  return deliveries.flatMap((delivery) => {
    const event = byId.get(delivery.eventId);
    return event ? [{ delivery, event }] : [];
  });
}

async function attachEvent<Delivery extends Row<WebhookDelivery>>(
  reader: RowReader,
  delivery: Delivery,
): Promise<{ delivery: Delivery; event: DeliveryEvent }> {
  const [event] = await readDeliveryEvents(reader, [delivery.eventId]);
  if (!event) throw new Error(`Delivery ${delivery.id} has no event`);
  return { delivery, event };
}

/** Without `data`: a page of deliveries would otherwise load megabytes of message text. */
function readDeliveryEvents(reader: RowReader, ids: readonly string[]): Promise<DeliveryEvent[]> {
  return reader.execute<DeliveryEvent[]>(sql`
    select id, type, redacted, test, env_id as "environmentId", inbox_id as "inboxId" from events where id in (${ids})`);
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
async function makeNext(transaction: Transaction, outbox: Outbox, delivery: WebhookDelivery): Promise<void> {
  if (delivery.status !== 'held' || delivery.heldFor !== 'endpoint_failing') {
    delivery.priorAttempts = delivery.attempts;
    delivery.completedAt = null;
    delivery.reconciledAt = null;
  }
  Object.assign(delivery, HELD_WHILE_FAILING, { nextAttemptAt: new Date() });
  await requestProbe(transaction, outbox, delivery.endpointId);
}

function cancelDelivery(transaction: Transaction, outbox: Outbox, delivery: WebhookDelivery): void {
  const { id, episode, status, organizationId } = delivery;
  if (status !== 'pending' && status !== 'held')
    throw new AppError('conflict', {
      detail: `The delivery ${id} is ${status}; only a pending or held delivery can be canceled.`,
      fix: 'There is nothing to cancel. To deliver it again, POST to its retry path.',
    });
  delivery.status = 'canceled';
  delivery.lastError = 'Canceled through the API.';
  delivery.nextAttemptAt = null;
  delivery.completedAt = new Date();
  if (status === 'held') return;
  outbox.enqueue(transaction, organizationId, {
    signal: { workflowId: deliverWebhookWorkflowId(id, episode), signalName: CANCEL_DELIVERY, args: [] },
  });
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
    fix: 'Create a new endpoint and replay the events to it.',
  });
}
