import type { Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Event } from '../events/event.entity.ts';
import type { Subscriber } from '../events/event.service.ts';
import { type WebhookDelivery, WebhookDeliveryEntity } from './delivery.entity.ts';
import { buildDeliveryStart } from './delivery-start.ts';

/**
 * Creates the delivery of an event to an endpoint and starts its run. It is `held` instead if the endpoint is disabled, or
 * if earlier deliveries wait until the endpoint answers again.
 */
export function addDelivery(
  transaction: Transaction,
  outbox: Outbox,
  event: Pick<Event, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'type'>,
  { id: endpointId, disabled, isHolding }: Subscriber,
): WebhookDelivery {
  const held = disabled || isHolding;
  const delivery = transaction.em.create(WebhookDeliveryEntity, {
    id: newId('webhookDelivery'),
    organizationId: event.organizationId,
    endpointId,
    eventId: event.id,
    status: held ? 'held' : 'pending',
    heldFor: held && !disabled ? 'endpoint_failing' : null,
    nextAttemptAt: held ? null : new Date(),
    createdAt: new Date(),
  });
  transaction.em.persist(delivery);
  if (held) return delivery;
  const start = buildDeliveryStart({
    ...event,
    id: delivery.id,
    episode: 1,
    endpointId,
    eventId: event.id,
    eventType: event.type,
  });
  outbox.enqueue(transaction, event.organizationId, { start });
  return delivery;
}
