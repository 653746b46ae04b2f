import type { Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Event } from '../events/event.entity.ts';
import { type WebhookDelivery, WebhookDeliveryEntity } from './delivery.entity.ts';
import { startOfDelivery } from './delivery-start.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';

/** Sends an event on its way to an endpoint; to a disabled one it waits as `held`, without a run. */
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
  const start = startOfDelivery({
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
