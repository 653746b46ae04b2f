import type { Outbox } from '../../platform/outbox/outbox.ts';
import { createEventService, type EventService } from '../events/event.service.ts';
import { addDelivery } from './add-delivery.ts';

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
  });
}
