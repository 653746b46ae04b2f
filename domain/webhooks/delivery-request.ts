import type { Event } from '../events/event.entity.ts';

/** Headers of a delivery that are the same in each attempt. */
export function deliveryHeaders({ test }: Pick<Event, 'test'>): Record<string, string> {
  return {
    'content-type': 'application/json',
    'user-agent': 'agent-email-webhooks/1',
    ...(test ? { 'x-service-test': 'true' } : {}),
  };
}

/** The request of a delivery as people may see it. */
export interface DeliveryRequest {
  method: 'POST';
  /** The present URL of the endpoint. */
  url: string;
  /** Without the signatures and the times of attempts, which are different in each attempt. */
  headers: Record<string, string>;
}

export function describeDeliveryRequest(
  event: Pick<Event, 'id' | 'test'>,
  { url }: { url: string },
): DeliveryRequest {
  return { method: 'POST', url, headers: { ...deliveryHeaders(event), 'webhook-id': event.id } };
}
