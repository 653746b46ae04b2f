import type { Scope } from '../../domain/identity/scope.ts';
import type { HoldReason } from '../../domain/webhooks/delivery.entity.ts';
import type {
  DeliveryControlService,
  DeliveryDetails,
} from '../../domain/webhooks/delivery-control.service.ts';
import type { WebhookEndpoint } from '../../domain/webhooks/endpoint.entity.ts';
import { describeError, describeProbes } from './words.ts';

/** The delivery that the service tries while the endpoint is failing. */
export async function findOldestHeld(
  webhookDeliveries: Pick<DeliveryControlService, 'list'>,
  scope: Scope,
  endpointId: string,
): Promise<DeliveryDetails | undefined> {
  const oldest = { limit: 1, order: 'asc' } as const;
  const { items } = await webhookDeliveries.list(scope, endpointId, { status: 'held' }, oldest);
  return items[0];
}

/** What keeps deliveries on hold. */
export interface Hold {
  heldUntil: HoldReason | 'endpoint_disabled';
  /** Of the delivery that the service tries; empty if the endpoint is not failing. */
  lastError: string;
  /** The delivery that a person can have tried now. */
  oldestId: string | undefined;
}

export function describeHold(
  endpoint: WebhookEndpoint,
  oldest: DeliveryDetails | undefined,
  timeoutMs: number,
): Hold {
  const { heldFor = null, lastError = null } = oldest?.delivery ?? {};
  const isProbed = heldFor === 'endpoint_failing' && describeProbes(endpoint) !== undefined;
  return {
    heldUntil: endpoint.disabled ? 'endpoint_disabled' : (heldFor ?? 'endpoint_disabled'),
    lastError: isProbed ? describeError(lastError, timeoutMs) : '',
    oldestId: oldest && isProbed && mayRetry(endpoint, oldest) ? oldest.delivery.id : undefined,
  };
}

/** Whether the list offers to try a delivery again. Its own page offers it for the others too. */
export function mayRetry({ disabled }: WebhookEndpoint, { delivery, event }: DeliveryDetails): boolean {
  const { status, heldFor } = delivery;
  const isWithdrawn = event.redacted && event.type === 'message.received';
  const isStuck = status === 'exhausted' || (status === 'held' && heldFor === 'endpoint_failing');
  return isStuck && !disabled && !isWithdrawn;
}
