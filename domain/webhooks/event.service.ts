import type { Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { WebhookDeliveryEntity } from './delivery.entity.ts';
import { startOfDelivery } from './delivery-start.ts';
import { type WebhookEndpoint, WebhookEndpointEntity } from './endpoint.entity.ts';
import { type Event, EventEntity } from './event.entity.ts';
import type { EventDataByType, EventType } from './event-types.ts';

export interface NewEvent<Type extends keyof EventDataByType> {
  organizationId: string;
  environmentId: string;
  inboxId: string | null;
  type: Type;
  data: EventDataByType[Type];
}

export interface EventService {
  /**
   * Records an event in the caller's transaction, with one delivery for each endpoint that subscribed to it. With the
   * commit the deliveries' workflows start; a disabled endpoint's delivery waits as `held`.
   */
  record<Type extends keyof EventDataByType>(transaction: Transaction, event: NewEvent<Type>): Promise<void>;
}

export function createEventService({ outbox }: { outbox: Outbox }): EventService {
  return {
    async record(transaction, { organizationId, environmentId, inboxId, type, data }) {
      const { em } = transaction;
      const event = em.create(EventEntity, {
        id: newId('event'),
        organizationId,
        environmentId,
        inboxId,
        type,
        data,
        createdAt: new Date(),
      });
      em.persist(event);
      const endpoints = await em.find(
        WebhookEndpointEntity,
        {
          organizationId,
          ...(isOrganizationWide(type) ? {} : { environmentId }),
          deletedAt: null,
          events: { $contains: [type] },
        },
        { fields: ['id', 'disabled', 'inboxIds'] },
      );
      for (const endpoint of endpoints) {
        if (endpoint.inboxIds && (inboxId === null || !endpoint.inboxIds.includes(inboxId))) continue;
        addDelivery(transaction, outbox, event, endpoint);
      }
    },
  };
}

/** What concerns the organization as a whole goes to the endpoints of every environment. */
function isOrganizationWide(type: EventType): boolean {
  return type.startsWith('domain.') || type.startsWith('usage.');
}

function addDelivery(
  transaction: Transaction,
  outbox: Outbox,
  event: Event,
  endpoint: Pick<WebhookEndpoint, 'id' | 'disabled'>,
): void {
  const deliveryId = newId('webhookDelivery');
  const held = endpoint.disabled;
  transaction.em.persist(
    transaction.em.create(WebhookDeliveryEntity, {
      id: deliveryId,
      organizationId: event.organizationId,
      endpointId: endpoint.id,
      eventId: event.id,
      status: held ? 'held' : 'pending',
      nextAttemptAt: held ? null : new Date(),
      createdAt: new Date(),
    }),
  );
  if (held) return;
  const start = startOfDelivery({
    ...event,
    id: deliveryId,
    episode: 1,
    endpointId: endpoint.id,
    eventId: event.id,
    eventType: event.type,
  });
  outbox.enqueue(transaction, event.organizationId, { start });
}
