import type { Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Event } from '../events/event.entity.ts';
import type { Subscriber } from '../events/event.service.ts';
import { type HoldReason, type WebhookDelivery, WebhookDeliveryEntity } from './delivery.entity.ts';
import { buildDeliveryStart } from './delivery-start.ts';

/**
 * Creates the delivery of an event to an endpoint and starts its run. It is `held` instead if the endpoint is disabled,
 * while the organization is closed or the event's owner suspended, if earlier deliveries wait until the endpoint answers
 * again, or while deliveries are switched off.
 */
export function addDelivery(
  transaction: Transaction,
  outbox: Outbox,
  event: Pick<Event, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'type'>,
  { id: endpointId, ...subscriber }: Subscriber,
): WebhookDelivery {
  const heldFor = findHoldReason(subscriber);
  const held = heldFor !== undefined;
  const delivery = transaction.em.create(WebhookDeliveryEntity, {
    id: newId('webhookDelivery'),
    organizationId: event.organizationId,
    endpointId,
    eventId: event.id,
    status: held ? 'held' : 'pending',
    heldFor: heldFor ?? null,
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

/** Undefined: the delivery starts. Null: it waits until the endpoint is enabled. */
function findHoldReason({
  disabled,
  ownerHold,
  isHolding,
  isSwitchedOff,
}: Omit<Subscriber, 'id'>): HoldReason | null | undefined {
  if (disabled) return null;
  if (ownerHold) return ownerHold;
  if (isHolding) return 'endpoint_failing';
  return isSwitchedOff ? 'switched_off' : undefined;
}
