import type { EntityManager } from '@mikro-orm/postgresql';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import { WEBHOOK_SCHEDULE_MS } from '../../workflows/webhooks/deliver-webhook.contract.ts';
import type { QuotaCache } from '../usage/quota-cache.ts';
import {
  type AttemptOutcome,
  attemptsInEpisode,
  GONE,
  HELD,
  isSuperseded,
  retryLater,
  SUPERSEDED,
  settleAs,
  settled,
  terminalChange,
} from './attempt-outcome.ts';
import { MAX_CONCURRENT_ATTEMPTS, openAttempt, UNHEALTHY_AFTER_FAILURES } from './attempt-slots.ts';
import {
  type DeliveryRow,
  type DueDelivery,
  type EndpointRow,
  type EventRow,
  lockDueDelivery,
  updateDelivery,
} from './delivery-rows.ts';
import { openSecrets } from './endpoint-secret.ts';
import type { Pace, RetryPacing } from './retry-pacing.ts';

export interface AttemptRequest {
  deliveryId: string;
  /** Attempt even if the schedule says later. */
  now: boolean;
  /** Episode of the calling run. */
  episode: number | undefined;
}

export interface BeginOptions {
  database: Database;
  secretBox: SecretBox;
  timeoutMs: number;
  quota: QuotaCache;
  pacing: RetryPacing;
  /** Whether the caller can wait in memory for a slot; if not, the attempt is postponed. */
  canWaitForSlot: (endpointId: string) => boolean;
}

/** An attempt whose row is committed and whose slot is leased: the request can be sent. */
export interface StartedAttempt {
  kind: 'started';
  number: number;
  endpoint: EndpointRow;
  secrets: ReturnType<typeof openSecrets>;
  event: EventRow;
  slot: number;
}

/** No slot is free and nothing was written. A slot may become free soon. */
export interface NoFreeSlot {
  kind: 'no_free_slot';
  endpointId: string;
}

/** Time for the parts of an attempt besides the request: checking the URL and recording the result. */
const LEASE_MARGIN_MS = 15_000;
/** How often one process tries to lease a slot of an endpoint. */
const HEALTHY_PACE: Pace = { minDelayMs: 500, intervalMs: 20 };
/** Slower, because an attempt at an unhealthy endpoint usually takes the whole timeout. */
const UNHEALTHY_PACE: Pace = { minDelayMs: 5_000, intervalMs: 200 };

/** Starts an attempt if the delivery is due and a slot is free; otherwise returns why not. */
export function beginAttempt(
  options: BeginOptions,
  { deliveryId, now, episode }: AttemptRequest,
): Promise<StartedAttempt | AttemptOutcome | NoFreeSlot> {
  return options.database.systemTransaction(async ({ em }) => {
    const due = await lockDueDelivery(em, deliveryId);
    if (!due) return GONE;
    const { delivery, endpoint } = due;
    if (isSuperseded(delivery, episode)) return SUPERSEDED;
    if (delivery.status !== 'pending') return settled(delivery);
    if (endpoint.deletedAt)
      return settleAs(em, delivery, terminalChange('canceled', 'The endpoint was deleted.'));
    if (endpoint.disabled) return settleAs(em, delivery, HELD);
    const waitMs = (delivery.nextAttemptAt?.getTime() ?? 0) - Date.now();
    if (waitMs > 0 && !now) return retryLater(delivery, waitMs);
    if (attemptsInEpisode(delivery) >= WEBHOOK_SCHEDULE_MS.length)
      return settleAs(em, delivery, terminalChange('exhausted', delivery.lastError));
    if ((await options.quota.remaining(em, delivery.organizationId)) === 0)
      return holdForUsageLimit(em, delivery);
    return takeSlot(em, options, due);
  });
}

async function takeSlot(
  em: EntityManager,
  { secretBox, timeoutMs, pacing, canWaitForSlot }: BeginOptions,
  due: DueDelivery,
): Promise<StartedAttempt | AttemptOutcome | NoFreeSlot> {
  const { delivery, endpoint, event } = due;
  // Opened before the attempt is counted: a wrong ENCRYPTION_KEY would otherwise use up all attempts within minutes.
  const secrets = openSecrets(endpoint, secretBox);
  const number = delivery.attempts + 1;
  const slot = await openAttempt(em, {
    deliveryId: delivery.id,
    number,
    organizationId: delivery.organizationId,
    endpointId: endpoint.id,
    slotCount: isUnhealthy(endpoint) ? 1 : MAX_CONCURRENT_ATTEMPTS,
    leaseMs: timeoutMs + LEASE_MARGIN_MS,
  });
  if (slot !== null) return { kind: 'started', number, endpoint, secrets, event, slot };
  if (!isUnhealthy(endpoint) && canWaitForSlot(endpoint.id))
    return { kind: 'no_free_slot', endpointId: endpoint.id };
  return postponeUntilSlot(em, due, pacing);
}

/** An unhealthy endpoint gets one attempt at a time until one succeeds. */
function isUnhealthy({ consecutiveFailures }: EndpointRow): boolean {
  return consecutiveFailures >= UNHEALTHY_AFTER_FAILURES;
}

/** Sets `nextAttemptAt` to the next try for a slot. Does not count as an attempt. */
async function postponeUntilSlot(
  em: EntityManager,
  { delivery, endpoint }: DueDelivery,
  pacing: RetryPacing,
): Promise<AttemptOutcome> {
  const unhealthy = isUnhealthy(endpoint);
  const delayMs = pacing.nextDelayMs(endpoint.id, unhealthy ? UNHEALTHY_PACE : HEALTHY_PACE);
  await updateDelivery(em, delivery.id, { nextAttemptAt: new Date(Date.now() + delayMs) });
  const detail = unhealthy
    ? 'Waiting for a slot: the endpoint keeps failing and gets one attempt at a time.'
    : `Waiting for a slot: the endpoint has ${MAX_CONCURRENT_ATTEMPTS} attempts in progress.`;
  return { kind: 'busy', delayMs, attempts: delivery.attempts, detail };
}

/** Holds the delivery without a run until the usage limit allows it: a new month or another tier, override or custom limit. */
async function holdForUsageLimit(em: EntityManager, delivery: DeliveryRow): Promise<AttemptOutcome> {
  await updateDelivery(em, delivery.id, { ...HELD, heldFor: 'usage_limit' });
  return {
    kind: 'settled',
    status: 'held: usage limit of webhook_deliveries reached',
    detail: 'The organization has reached its limit of webhook_deliveries.',
  };
}
