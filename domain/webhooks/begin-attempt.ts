import type { SecretBox } from '../../platform/crypto.ts';
import { compileOnce } from '../../platform/database/compile-once.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { WEBHOOK_SCHEDULE_MS } from '../../workflows/webhooks/deliver-webhook.contract.ts';
import type { Event } from '../events/event.entity.ts';
import { confirmSuspension, type EventHold, OWNER_HOLD } from '../events/event-suspension.ts';
import { isSwitchedOff } from '../toggles/toggles.ts';
import type { QuotaCache } from '../usage/quota-cache.ts';
import { type AttemptShare, MAX_CONCURRENT_ATTEMPTS, openAttempt } from './attempt-slots.ts';
import {
  type AttemptOutcome,
  attemptsSinceRestart,
  type DeliveryState,
  GONE,
  HELD,
  HELD_WHILE_DELETED,
  HELD_WHILE_FAILING,
  HELD_WHILE_SUSPENDED,
  HELD_WHILE_SWITCHED_OFF,
  isSuperseded,
  isWithdrawn,
  lockDelivery,
  notDueYet,
  PURGED,
  SUPERSEDED,
  settleAs,
  settled,
  terminalChange,
  updateDelivery,
} from './delivery-state.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';
import { isFailing, requestProbe, startHolding } from './endpoint-health.ts';
import { openSecrets } from './endpoint-secret.ts';
import type { Pace, RetryPacing } from './retry-pacing.ts';

export interface AttemptRequest {
  deliveryId: string;
  /** Attempt even if the schedule says later. */
  now: boolean;
  /** Number of the calling run. */
  generation: number | undefined;
}

export interface OpenOptions {
  secretBox: SecretBox;
  timeoutMs: number;
}

export interface BeginOptions extends OpenOptions {
  database: Database;
  outbox: Outbox;
  quota: QuotaCache;
  pacing: RetryPacing;
  /** The attempt's share of the worker. Without a share, the attempt is postponed. */
  share: AttemptShare;
  /** Whether the caller can wait in memory for a slot; if not, the attempt is postponed. */
  canWaitForSlot: (endpointId: string) => boolean;
}

/** An attempt whose row is committed and whose slot is leased: the request can be sent. */
export interface StartedAttempt {
  kind: 'started';
  number: number;
  endpoint: AttemptedEndpoint;
  secrets: ReturnType<typeof openSecrets>;
  event: AttemptedEvent;
  slot: number;
}

/** No slot is free and nothing was written. A slot may become free soon. */
export interface NoFreeSlot {
  kind: 'no_free_slot';
  endpointId: string;
}

/** The organization has no share left and nothing was written. One may become free soon. */
export interface NoShare {
  kind: 'no_share';
  organizationId: string;
}

/** Time for the parts of an attempt besides the request: checking the URL and recording the result. */
const LEASE_MARGIN_MS = 15_000;
/** How often one process tries to lease a slot of an endpoint. */
const SLOT_PACE: Pace = { minDelayMs: 500, intervalMs: 20, slots: MAX_CONCURRENT_ATTEMPTS };
/** How often one process tries to get a share for an organization after waiting in memory has failed. */
const SHARE_PACE: Pace = { minDelayMs: 500, intervalMs: 50, slots: 50 };

export type AttemptedEndpoint = Pick<
  WebhookEndpoint,
  | 'id'
  | 'url'
  | 'secret'
  | 'previousSecret'
  | 'previousSecretExpiresAt'
  | 'disabled'
  | 'deletedAt'
  | 'failingSince'
  | 'consecutiveFailures'
  | 'holdingSince'
>;
export type AttemptedEvent = Pick<
  Event,
  'id' | 'organizationId' | 'environmentId' | 'type' | 'data' | 'redacted' | 'test' | 'createdAt'
>;

/** A delivery with the data that an attempt needs and the holds of its event. */
export interface DueDelivery extends EventHold {
  delivery: DeliveryState;
  endpoint: AttemptedEndpoint;
  event: AttemptedEvent;
}

/**
 * Locks the delivery and reads its endpoint and event. The second read is a separate statement: a statement that waits
 * for a lock sees all other rows as they were before the wait.
 */
export async function lockDueDelivery(db: Db, id: string): Promise<DueDelivery | null> {
  const delivery = await lockDelivery(db, id);
  const [target] = delivery ? await selectTarget(db, { deliveryId: id }) : [];
  if (!delivery || !target) return null;
  const { url, secret, previousSecret, previousSecretExpiresAt, disabled, deletedAt } = target;
  const { failingSince, consecutiveFailures, holdingSince, ownerHold } = target;
  const { organizationId, environmentId, type, data, redacted, test, createdAt } = target;
  const isReinstated = ownerHold === 'suspension' && !(await confirmSuspension(db, target));
  return {
    delivery,
    ownerHold: isReinstated ? null : ownerHold,
    isSwitchedOff: target.isSwitchedOff,
    endpoint: {
      id: target.endpointId,
      url,
      secret,
      previousSecret,
      previousSecretExpiresAt,
      disabled,
      deletedAt,
      failingSince,
      consecutiveFailures,
      holdingSince,
    },
    event: { id: target.eventId, organizationId, environmentId, type, data, redacted, test, createdAt },
  };
}

/** Prepared, because the statement runs for every webhook, and planning it takes longer than running it. */
const selectTarget = compileOnce((db, { deliveryId }: { deliveryId: string }) =>
  db
    .selectFrom('webhook_deliveries as d')
    .innerJoin('webhook_endpoints as e', 'e.id', 'd.endpoint_id')
    .innerJoin('events as v', 'v.id', 'd.event_id')
    .select([
      'e.id as endpointId',
      'e.url',
      'e.secret',
      'e.previous_secret as previousSecret',
      'e.previous_secret_expires_at as previousSecretExpiresAt',
      'e.disabled',
      'e.deleted_at as deletedAt',
      'e.failing_since as failingSince',
      'e.consecutive_failures as consecutiveFailures',
      'e.holding_since as holdingSince',
      'v.id as eventId',
      'v.org_id as organizationId',
      'v.env_id as environmentId',
      'v.inbox_id as inboxId',
      'v.type',
      'v.data',
      'v.redacted',
      'v.test',
      'v.created_at as createdAt',
      OWNER_HOLD.as('ownerHold'),
      isSwitchedOff('webhook_deliveries').as('isSwitchedOff'),
    ])
    .where('d.id', '=', deliveryId)
    .modifyEnd(PREPARED),
);

/** Starts an attempt if the delivery is due and a slot is free; otherwise returns why not. */
export function beginAttempt(
  options: BeginOptions,
  { deliveryId, now, generation }: AttemptRequest,
): Promise<StartedAttempt | AttemptOutcome | NoFreeSlot | NoShare> {
  return options.database.systemTransaction(async (transaction) => {
    const { db } = transaction;
    const due = await lockDueDelivery(db, deliveryId);
    if (!due) return GONE;
    const { delivery, endpoint } = due;
    if (isSuperseded(delivery, generation)) return SUPERSEDED;
    if (delivery.status !== 'pending') return settled(delivery);
    if (endpoint.deletedAt)
      return settleAs(db, delivery, terminalChange('canceled', 'The endpoint was deleted.'));
    if (isWithdrawn(due.event)) return settleAs(db, delivery, terminalChange('canceled', PURGED));
    if (endpoint.disabled) return settleAs(db, delivery, HELD);
    if (due.ownerHold === 'organization_deleted') return settleAs(db, delivery, HELD_WHILE_DELETED);
    if (due.ownerHold === 'suspension') return settleAs(db, delivery, HELD_WHILE_SUSPENDED);
    if (due.isSwitchedOff) return settleAs(db, delivery, HELD_WHILE_SWITCHED_OFF);
    const waitMs = (delivery.nextAttemptAt?.getTime() ?? 0) - Date.now();
    if (waitMs > 0 && !now) return notDueYet(delivery, waitMs);
    if (attemptsSinceRestart(delivery) >= WEBHOOK_SCHEDULE_MS.length)
      return settleAs(db, delivery, terminalChange('exhausted', delivery.lastError));
    if ((await options.quota.remaining(db, delivery.organizationId)) === 0)
      return holdForUsageLimit(db, delivery);
    return takeSlot(transaction, options, due, now);
  });
}

async function takeSlot(
  transaction: Transaction,
  options: BeginOptions,
  due: DueDelivery,
  now: boolean,
): Promise<StartedAttempt | AttemptOutcome | NoFreeSlot | NoShare> {
  const { db } = transaction;
  const { endpoint, delivery } = due;
  const { organizationId } = delivery;
  if (!options.share.claim(organizationId))
    return options.share.shouldWait()
      ? { kind: 'no_share', organizationId }
      : postponeUntilShare(db, due, options.pacing);
  const started = await startAttempt(db, options, due);
  if (started) return started;
  if (isFailing(endpoint)) return holdWhileFailing(transaction, options.outbox, due, now);
  if (options.canWaitForSlot(endpoint.id)) return { kind: 'no_free_slot', endpointId: endpoint.id };
  return postponeUntilSlot(db, due, options.pacing);
}

/** Leases a slot and records the attempt. A failing endpoint gets one attempt at a time. Returns null without a slot. */
export async function startAttempt(
  db: Db,
  { secretBox, timeoutMs }: OpenOptions,
  { delivery, endpoint, event }: DueDelivery,
): Promise<StartedAttempt | null> {
  // Opened before the attempt is counted: a wrong ENCRYPTION_KEY would otherwise use up all attempts within minutes.
  const secrets = openSecrets(endpoint, secretBox);
  const number = delivery.attempts + 1;
  const slot = await openAttempt(db, {
    deliveryId: delivery.id,
    number,
    organizationId: delivery.organizationId,
    endpointId: endpoint.id,
    slotCount: isFailing(endpoint) ? 1 : MAX_CONCURRENT_ATTEMPTS,
    leaseMs: timeoutMs + LEASE_MARGIN_MS,
  });
  return slot === null ? null : { kind: 'started', number, endpoint, secrets, event, slot };
}

/**
 * Ends the run of a delivery to a failing endpoint: thousands of runs that wait for one slot would take Temporal's
 * capacity from everything else. The probe first attempts deliveries for which an immediate attempt was requested.
 */
async function holdWhileFailing(
  transaction: Transaction,
  outbox: Outbox,
  { delivery, endpoint }: DueDelivery,
  now: boolean,
): Promise<AttemptOutcome> {
  if (now) await requestProbe(transaction, outbox, endpoint.id);
  else if (!endpoint.holdingSince) await startHolding(transaction, outbox, endpoint.id);
  return settleAs(transaction.db, delivery, {
    ...HELD_WHILE_FAILING,
    nextAttemptAt: now ? new Date() : null,
  });
}

function postponeUntilSlot(db: Db, due: DueDelivery, pacing: RetryPacing): Promise<AttemptOutcome> {
  const delayMs = pacing.nextDelayMs(due.endpoint.id, SLOT_PACE);
  const detail = `Waiting for a slot: the endpoint has ${MAX_CONCURRENT_ATTEMPTS} attempts in progress, or this delivery has one.`;
  return postpone(db, due, { delayMs, detail });
}

function postponeUntilShare(db: Db, due: DueDelivery, pacing: RetryPacing): Promise<AttemptOutcome> {
  const delayMs = pacing.nextDelayMs(due.delivery.organizationId, SHARE_PACE);
  const detail = 'Waiting for a slot: the organization has its share of the attempts in progress.';
  return postpone(db, due, { delayMs, detail });
}

/** Sets `nextAttemptAt` without counting an attempt. */
async function postpone(
  db: Db,
  { delivery }: DueDelivery,
  { delayMs, detail }: { delayMs: number; detail: string },
): Promise<AttemptOutcome> {
  await updateDelivery(db, delivery.id, { nextAttemptAt: new Date(Date.now() + delayMs) });
  return { kind: 'busy', delayMs, attempts: delivery.attempts, detail };
}

/**
 * Holds the delivery without a run until the usage limit allows it again: in a new month, or with another tier,
 * override or custom limit.
 */
async function holdForUsageLimit(db: Db, delivery: DeliveryState): Promise<AttemptOutcome> {
  await updateDelivery(db, delivery.id, { ...HELD, heldFor: 'usage_limit' });
  return {
    kind: 'settled',
    status: 'held: usage limit of webhook_deliveries reached',
    detail: 'The organization has reached its limit of webhook_deliveries.',
  };
}
