import type { Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Event } from '../events/event.entity.ts';
import { type WebhookDelivery, WebhookDeliveryEntity } from './delivery.entity.ts';
import { buildDeliveryStart } from './delivery-start.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';

/** Creates the delivery of an event to an endpoint and starts its run. For a disabled endpoint it is `held` instead. */
export function addDelivery(
  transaction: Transaction,
  outbox: Outbox,
  event: Pick<Event, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'type'>,
  endpoint: Pick<WebhookEndpoint, 'id' | 'disabled'>,
): WebhookDelivery {
  const held = endpoint.disabled;
  const delivery = transaction.em.create(WebhookDeliveryEntity, {
    id: newId('webhookDelivery'),
    organizationId: event.organizationId,
    endpointId: endpoint.id,
    eventId: event.id,
    status: held ? 'held' : 'pending',
    nextAttemptAt: held ? null : new Date(),
    createdAt: new Date(),
  });
  transaction.em.persist(delivery);
  if (held) return delivery;
  const start = buildDeliveryStart({
    ...event,
    id: delivery.id,
    episode: 1,
    endpointId: endpoint.id,
    eventId: event.id,
    eventType: event.type,
  });
  outbox.enqueue(transaction, event.organizationId, { start });
  return delivery;
}
