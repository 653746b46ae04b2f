import type { EntityManager } from '@mikro-orm/postgresql';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Egress, EgressResult } from '../../platform/egress/egress.ts';
import { signWebhook } from '../../platform/webhook-signature.ts';
import {
  WEBHOOK_JITTER,
  WEBHOOK_MAX_RETRY_AFTER_MS,
  WEBHOOK_SCHEDULE_MS,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { envelope } from '../events/envelope.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { createRoomWatch, type RoomWatch } from '../usage/room-watch.ts';
import {
  ATTEMPTS_AT_ONCE,
  closeArrived,
  closeAttempt,
  DEAD_AFTER_FAILURES,
  openAttempt,
} from './attempt-slots.ts';
import {
  changeDelivery,
  type DeliveryChange,
  type DeliveryRow,
  type DueDelivery,
  type EndpointRow,
  type EventRow,
  lockDelivery,
  lockDueDelivery,
} from './delivery-rows.ts';
import { clearFailures, countFailure, disableEndpoint, FAILING_DAYS } from './endpoint-health.ts';
import { secretsOf } from './endpoint-secret.ts';
import { createFreedSlots } from './freed-slots.ts';
import { createSlotTurns, type Pace, type SlotTurns } from './slot-turns.ts';

/**
 * `retry`: nothing is decided yet, come again after `delayMs`. `busy`: likewise, and nothing was tried, because as many
 * attempts as the endpoint may have are under way. `settled`: the delivery's status says what it is.
 */
export type AttemptOutcome =
  | { kind: 'settled'; status: string; detail: string }
  | { kind: 'retry'; delayMs: number; attempts: number; detail: string }
  | { kind: 'busy'; delayMs: number; attempts: number; detail: string };

/** No slot is free; one may be within the moment. */
interface InLine {
  kind: 'in line';
  endpointId: string;
}

export interface DeliveryService {
  /**
   * Makes one attempt if one is due, and records it. The attempt's row is committed before the receiver is called, so
   * that one cut short shows.
   *
   * @param now attempt although the schedule says later.
   * @param episode of the run that asks; one of an earlier episode is told that it is over.
   */
  attempt(deliveryId: string, now: boolean, episode?: number): Promise<AttemptOutcome>;
  /** Gives a delivery up; one that is settled, or in another episode, stays as it is. Returns its status. */
  cancel(deliveryId: string, episode?: number): Promise<string>;
}

export interface DeliveryServiceOptions {
  database: Database;
  egress: Pick<Egress, 'post'>;
  secretBox: SecretBox;
  notifications: NotificationService;
  timeoutMs: number;
  /** 0 ≤ x < 1, for the jitter. */
  random: () => number;
  /** How many attempts an organization may still make. */
  room?: RoomWatch;
  /** How long an attempt waits in the worker for a slot. */
  freedWithinMs?: number;
}

interface DueAttempt {
  number: number;
  endpoint: EndpointRow;
  secrets: ReturnType<typeof secretsOf>;
  event: EventRow;
  slot: number;
}

const MAX_ANSWER_BYTES = 65_536;
const KEPT_ANSWER_BYTES = 4_096;

export function createDeliveryService(options: DeliveryServiceOptions): DeliveryService {
  const { database, egress, timeoutMs, freedWithinMs = FREED_WITHIN_MS } = options;
  const { room = createRoomWatch({ counter: 'webhook_deliveries' }) } = options;
  const turns = createSlotTurns({ furthestMs: FURTHEST_TURN_MS, now: Date.now });
  const freed = createFreedSlots({
    waitingAtMost: WAITING_AT_MOST,
    quickWithinMs: freedWithinMs,
    now: () => performance.now(),
  });

  /**
   * A slot that comes free within the moment saves a wait in Temporal, which costs more than the attempt. Who is next
   * may still find it taken, by another worker or by an attempt that just came: so it looks until the moment is over.
   */
  async function beginSoon(wanted: WantedAttempt): Promise<DueAttempt | AttemptOutcome> {
    const until = performance.now() + freedWithinMs;
    for (;;) {
      const leftMs = until - performance.now();
      const mayWait = (endpointId: string) => leftMs > 0 && freed.isNear(endpointId);
      const due = await begin({ ...options, room, turns, mayWait }, wanted);
      if (!('kind' in due) || due.kind !== 'in line') return due;
      await freed.wait(due.endpointId, leftMs);
    }
  }
  return {
    async attempt(deliveryId, now, episode) {
      const due = await beginSoon({ deliveryId, now, episode });
      if ('kind' in due) return due;
      const { endpoint, secrets, event } = due;
      const body = envelopeOf(event);
      const timestampSeconds = Math.floor(Date.now() / 1000);
      const result = await egress.post(endpoint.url, {
        headers: {
          'content-type': 'application/json',
          'user-agent': 'agent-email-webhooks/1',
          ...(event.test ? { 'x-service-test': 'true' } : {}),
          ...signWebhook({ ...secrets, eventId: event.id, timestampSeconds, body }),
        },
        body,
        timeoutMs,
        maxResponseBytes: MAX_ANSWER_BYTES,
        keepBytes: KEPT_ANSWER_BYTES,
      });
      const outcome = await settle(options, { ...due, deliveryId, result });
      freed.announce(endpoint.id);
      return outcome;
    },

    cancel: (deliveryId, episode) => cancelDelivery(database, deliveryId, episode),
  };
}

/** See {@link DeliveryService.cancel}. */
export function cancelDelivery(database: Database, deliveryId: string, episode?: number): Promise<string> {
  return database.systemTransaction(async ({ em }) => {
    const delivery = await lockDelivery(em, deliveryId);
    if (!delivery) return 'gone';
    if (isOver(delivery, episode)) return OVER;
    if (delivery.status !== 'pending') return delivery.status;
    return (await settleAs(em, delivery, closed('canceled', 'Canceled by an operator.'))).status;
  });
}

/** The envelope of the specification, as the bytes that are signed and sent. */
export function envelopeOf(event: Omit<EventRow, 'test'>): string {
  return JSON.stringify(envelope(event));
}

/** What a run of an earlier episode is told. */
const OVER = 'over';

function isOver(delivery: DeliveryRow, episode: number | undefined): boolean {
  return episode !== undefined && episode !== delivery.episode;
}

interface WantedAttempt {
  deliveryId: string;
  now: boolean;
  episode: number | undefined;
}

interface BeginOptions extends DeliveryServiceOptions {
  room: RoomWatch;
  turns: SlotTurns;
  /** Whether to leave the row as it is where no slot is free. */
  mayWait: (endpointId: string) => boolean;
}

async function begin(
  { database, secretBox, timeoutMs, room, turns, mayWait }: BeginOptions,
  { deliveryId, now, episode }: WantedAttempt,
): Promise<DueAttempt | AttemptOutcome | InLine> {
  return database.systemTransaction(async ({ em }) => {
    const due = await lockDueDelivery(em, deliveryId);
    if (!due) return { kind: 'settled', status: 'gone', detail: 'The delivery no longer exists.' };
    const { delivery, endpoint, event } = due;
    if (isOver(delivery, episode))
      return { kind: 'settled', status: OVER, detail: 'The delivery was started anew.' };
    if (delivery.status !== 'pending') return settled(delivery);
    if (endpoint.deletedAt) return settleAs(em, delivery, closed('canceled', 'The endpoint was deleted.'));
    if (endpoint.disabled) return settleAs(em, delivery, HELD);
    const waitMs = (delivery.nextAttemptAt?.getTime() ?? 0) - Date.now();
    if (waitMs > 0 && !now) return retryLater(delivery, waitMs);
    if (triesOf(delivery) >= WEBHOOK_SCHEDULE_MS.length)
      return settleAs(em, delivery, closed('exhausted', delivery.lastError));
    if ((await room.roomOf(em, delivery.organizationId)) === 0) return holdOverLimit(em, delivery);
    // Before anything is counted: with a key of the service that does not fit, all attempts would be used up in minutes.
    const secrets = secretsOf(endpoint, secretBox);
    const number = delivery.attempts + 1;
    const slot = await openAttempt(em, {
      deliveryId,
      number,
      organizationId: delivery.organizationId,
      endpointId: endpoint.id,
      slots: isDead(endpoint) ? 1 : ATTEMPTS_AT_ONCE,
      leaseMs: timeoutMs + LEASE_MARGIN_MS,
    });
    if (slot === null && !isDead(endpoint) && mayWait(endpoint.id))
      return { kind: 'in line', endpointId: endpoint.id };
    if (slot === null) return waitForSlot(em, due, turns);
    return { number, endpoint, secrets, event, slot };
  });
}

/** What an attempt takes beside its answer: the look at the URL, and the record. */
const LEASE_MARGIN_MS = 15_000;
/** Looks for a slot at one endpoint, a process. */
const HEALTHY_PACE: Pace = { leastMs: 500, everyMs: 20 };
/** A dead endpoint's probe takes its time, as a rule all of it; ten thousand who wait cost as much as a few. */
const DEAD_PACE: Pace = { leastMs: 5_000, everyMs: 200 };
const FURTHEST_TURN_MS = 1_800_000;
/** What waits in the worker for a slot of a slow endpoint, and for how long; a part of the attempts a worker may run. */
const WAITING_AT_MOST = 25;
const FREED_WITHIN_MS = 500;

function isDead({ failuresInRow }: EndpointRow): boolean {
  return failuresInRow >= DEAD_AFTER_FAILURES;
}

/** Nothing was tried, so nothing is counted; the row says when it is looked at again. */
async function waitForSlot(
  em: EntityManager,
  { delivery, endpoint }: DueDelivery,
  turns: SlotTurns,
): Promise<AttemptOutcome> {
  const dead = isDead(endpoint);
  const delayMs = turns.next(endpoint.id, dead ? DEAD_PACE : HEALTHY_PACE);
  await changeDelivery(em, delivery.id, { nextAttemptAt: new Date(Date.now() + delayMs) });
  const detail = dead
    ? 'Waits for its turn: the endpoint fails, and is asked by one attempt at a time.'
    : `Waits for its turn: ${ATTEMPTS_AT_ONCE} attempts at the endpoint are under way.`;
  return { kind: 'busy', delayMs, attempts: delivery.attempts, detail };
}

interface Settlement extends DueAttempt {
  deliveryId: string;
  result: EgressResult;
}

async function settle(options: DeliveryServiceOptions, settlement: Settlement): Promise<AttemptOutcome> {
  const { deliveryId, number, endpoint, slot, result } = settlement;
  const attempt = {
    deliveryId,
    number,
    endpointId: endpoint.id,
    slot,
    durationMs: result.kind === 'blocked' ? 0 : result.durationMs,
    statusCode: result.kind === 'answer' ? result.status : null,
    responseBody: result.kind === 'answer' ? storableText(result.body) : null,
  };
  // The usual case, without a transaction of several statements.
  if (!isFailure(result) && endpoint.failingSince === null) {
    const arrived = await options.database.autocommit((em) => closeArrived(em, attempt));
    if (arrived) return { kind: 'settled', status: 'delivered', detail: '' };
  }
  return settleInTransaction(options, settlement, attempt);
}

async function settleInTransaction(
  { database, notifications, random }: DeliveryServiceOptions,
  { deliveryId, number, endpoint, result }: Settlement,
  attempt: Parameters<typeof closeArrived>[1],
): Promise<AttemptOutcome> {
  return database.systemTransaction(async (transaction) => {
    const { em } = transaction;
    const delivery = await lockDelivery(em, deliveryId);
    if (!delivery) return { kind: 'settled', status: 'gone', detail: 'The delivery no longer exists.' };
    const detail = describe(result);
    const failed = isFailure(result);
    await closeAttempt(em, { ...attempt, error: failed ? detail : null });
    if (!failed && endpoint.failingSince !== null) await clearFailures(em, endpoint.id);
    const standing = failed ? await countFailure(em, endpoint.id) : null;
    const gone = result.kind === 'answer' && result.status === 410;
    if (gone || standing?.hopeless) {
      const reason = gone ? 'The receiver answered 410 Gone.' : FAILED_FOR_DAYS;
      await disableEndpoint(transaction, notifications, {
        endpointId: endpoint.id,
        reason,
        attempt: { deliveryId, number },
      });
    }
    // Held while the attempt was under way: what arrived has arrived.
    if (delivery.status !== 'pending' && (failed || delivery.status !== 'held')) return settled(delivery);
    const told = { lastStatusCode: attempt.statusCode, lastError: failed ? detail : null };
    const settleTold = (change: DeliveryChange) => settleAs(em, delivery, { ...told, ...change });
    if (!failed) return settleTold(closed('delivered', null));
    if (result.kind === 'blocked') return settleTold(closed('blocked', detail));
    if (gone || standing?.hopeless || standing?.disabled) return settleTold(HELD);
    if (triesOf(delivery) >= WEBHOOK_SCHEDULE_MS.length) return settleTold(closed('exhausted', detail));
    const delayMs = pauseBefore(triesOf(delivery) + 1, result, random);
    await changeDelivery(em, deliveryId, { ...told, nextAttemptAt: new Date(Date.now() + delayMs) });
    return retryLater({ ...delivery, ...told }, delayMs);
  });
}

function isFailure(result: EgressResult): boolean {
  return result.kind !== 'answer' || result.status < 200 || result.status > 299;
}

const FAILED_FOR_DAYS = `Every attempt failed for ${FAILING_DAYS} days.`;

/** Attempts the schedule counts: those of this episode. */
function triesOf({ attempts, attemptsBefore }: DeliveryRow): number {
  return attempts - attemptsBefore;
}

/** The schedule's pause with jitter, or the receiver's own wish where that is longer. */
export function pauseBefore(attempt: number, result: EgressResult, random: () => number): number {
  const scheduled = WEBHOOK_SCHEDULE_MS[attempt - 1] ?? 0;
  const jittered = scheduled * (1 + WEBHOOK_JITTER * (2 * random() - 1));
  const wished = result.kind === 'answer' ? (result.retryAfterMs ?? 0) : 0;
  return Math.round(Math.max(jittered, Math.min(wished, WEBHOOK_MAX_RETRY_AFTER_MS)));
}

function describe(result: EgressResult): string {
  if (result.kind === 'answer') return `HTTP ${result.status}`;
  return result.kind === 'failed' ? result.error : `Not sent: ${result.reason}`;
}

function closed(
  status: 'delivered' | 'canceled' | 'blocked' | 'exhausted',
  lastError: string | null,
): DeliveryChange {
  return { status, lastError, nextAttemptAt: null, completedAt: new Date() };
}

/** Waits without a run until the endpoint is enabled again. */
const HELD = { status: 'held', heldFor: null, nextAttemptAt: null } satisfies DeliveryChange;

/** Waits without a run until there is room again: with the month, another tier, override or cap. */
async function holdOverLimit(em: EntityManager, delivery: DeliveryRow): Promise<AttemptOutcome> {
  await changeDelivery(em, delivery.id, { ...HELD, heldFor: 'usage_limit' });
  const detail = 'The organization has used up its webhook_deliveries.';
  return { kind: 'settled', status: 'held: webhook_deliveries are used up', detail };
}

async function settleAs(em: EntityManager, delivery: DeliveryRow, change: DeliveryChange): Promise<Settled> {
  await changeDelivery(em, delivery.id, change);
  return settled({ ...delivery, ...change });
}

type Settled = Extract<AttemptOutcome, { kind: 'settled' }>;

function settled(delivery: Pick<DeliveryRow, 'status' | 'lastError'>): Settled {
  return { kind: 'settled', status: delivery.status, detail: delivery.lastError ?? '' };
}

function retryLater(delivery: Pick<DeliveryRow, 'attempts' | 'lastError'>, delayMs: number): AttemptOutcome {
  return { kind: 'retry', delayMs, attempts: delivery.attempts, detail: delivery.lastError ?? 'not due yet' };
}
