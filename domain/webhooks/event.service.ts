import type { Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { addDelivery } from './add-delivery.ts';
import { WebhookEndpointEntity } from './endpoint.entity.ts';
import { envelope, fitting } from './envelope.ts';
import { EventEntity } from './event.entity.ts';
import { type EventDataByType, isOrganizationWide } from './event-types.ts';

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
      const fields = { id: newId('event'), organizationId, environmentId, type, createdAt: new Date() };
      const event = em.create(EventEntity, {
        ...fields,
        inboxId,
        data: fitting(envelope({ ...fields, data })).data,
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
