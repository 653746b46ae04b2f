import type { Database, Transaction } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { EgressResult } from '../../platform/egress/egress.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import {
  WEBHOOK_JITTER,
  WEBHOOK_MAX_RETRY_AFTER_MS,
  WEBHOOK_SCHEDULE_MS,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { closeAttempt, closeDelivered } from './attempt-slots.ts';
import type { StartedAttempt } from './begin-attempt.ts';
import { MAX_HEADER_NAME_LENGTH, MAX_HEADER_VALUE_LENGTH, MAX_RESPONSE_HEADERS } from './delivery.entity.ts';
import {
  type AttemptOutcome,
  attemptsSinceRestart,
  type DeliveryChange,
  type DeliveryState,
  GONE,
  HELD,
  HELD_WHILE_FAILING,
  lockDelivery,
  settleAs,
  settled,
  terminalChange,
  updateDelivery,
} from './delivery-state.ts';
import {
  clearFailures,
  disableEndpoint,
  type EndpointHealth,
  MAX_FAILING_DAYS,
  recordFailure,
  startHolding,
  wakeProbe,
} from './endpoint-health.ts';

export interface RecordOptions {
  database: Database;
  outbox: Outbox;
  notifications: NotificationService;
  /** 0 ≤ x < 1, for the jitter. */
  random: () => number;
}

export interface FinishedAttempt extends StartedAttempt {
  deliveryId: string;
  result: EgressResult;
}

/** Records the result of an attempt, releases its slot and decides what happens next: a retry, a hold or a final status. */
export async function recordAttempt(
  options: RecordOptions,
  finished: FinishedAttempt,
): Promise<AttemptOutcome> {
  const { deliveryId, number, endpoint, slot, result } = finished;
  const attempt = {
    deliveryId,
    number,
    endpointId: endpoint.id,
    slot,
    durationMs: result.kind === 'blocked' ? 0 : result.durationMs,
    statusCode: result.kind === 'response' ? result.status : null,
    responseBody: result.kind === 'response' ? storableText(result.body) : null,
    responseHeaders: result.kind === 'response' ? retainedHeaders(result.headers ?? {}) : null,
  };
  // The common case needs one statement and no transaction.
  if (!isFailure(result) && endpoint.failingSince === null) {
    const delivered = await closeDelivered(options.database.db, attempt);
    if (delivered) return { kind: 'settled', status: 'delivered', detail: '' };
  }
  return recordInTransaction(options, finished, attempt);
}

/** The first headers, each cut to a bounded length. */
function retainedHeaders(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers)
      .slice(0, MAX_RESPONSE_HEADERS)
      .map(([name, value]) => [
        storableText(name.slice(0, MAX_HEADER_NAME_LENGTH)),
        storableText(value.slice(0, MAX_HEADER_VALUE_LENGTH)),
      ]),
  );
}

async function recordInTransaction(
  options: RecordOptions,
  finished: FinishedAttempt,
  attempt: Parameters<typeof closeDelivered>[1],
): Promise<AttemptOutcome> {
  const { deliveryId, result } = finished;
  return options.database.systemTransaction(async (transaction) => {
    const { db } = transaction;
    const delivery = await lockDelivery(db, deliveryId);
    if (!delivery) return GONE;
    const failed = isFailure(result);
    const detail = describeResult(result);
    await closeAttempt(db, { ...attempt, error: failed ? detail : null });
    const { disabled, failing } = await recordHealth(transaction, options, { ...finished, delivery });
    // A delivery that was held during the attempt still counts as delivered if the receiver accepted it.
    if (delivery.status !== 'pending' && delivery.status !== 'held') return settled(delivery);
    const recorded = { lastStatusCode: attempt.statusCode, lastError: failed ? detail : null };
    const settle = (change: DeliveryChange) => settleAs(db, delivery, { ...recorded, ...change });
    if (!failed) return settle({ ...terminalChange('delivered', null), heldFor: null });
    if (result.kind === 'blocked') return settle({ ...terminalChange('blocked', detail), heldFor: null });
    if (disabled) return settle(HELD);
    if (delivery.status === 'held') return settle({});
    if (attemptsSinceRestart(delivery) >= WEBHOOK_SCHEDULE_MS.length)
      return settle(terminalChange('exhausted', detail));
    if (failing) return settle(HELD_WHILE_FAILING);
    const delayMs = retryDelayMs(attemptsSinceRestart(delivery) + 1, result, options.random);
    await updateDelivery(db, deliveryId, { ...recorded, nextAttemptAt: new Date(Date.now() + delayMs) });
    return { kind: 'retry', delayMs, attempts: delivery.attempts, detail };
  });
}

/** Counts the result for the endpoint: starts or wakes its probe, or disables it. */
async function recordHealth(
  transaction: Transaction,
  { outbox, notifications }: RecordOptions,
  { deliveryId, number, endpoint, result, delivery }: FinishedAttempt & { delivery: DeliveryState },
): Promise<{ disabled: boolean; failing: boolean }> {
  const { db } = transaction;
  if (!isFailure(result)) {
    const recovered = endpoint.failingSince === null ? null : await clearFailures(db, endpoint.id);
    // A held delivery was attempted by the probe itself.
    if (recovered && delivery.status === 'pending') wakeProbe(transaction, outbox, recovered);
    return { disabled: false, failing: false };
  }
  const health = await recordFailure(db, endpoint.id);
  const reason = findDisableReason(result, health);
  if (reason !== null) {
    const attempt = { deliveryId, number };
    await disableEndpoint(transaction, notifications, { endpointId: endpoint.id, reason, attempt });
  } else if (health.needsProbe) await startHolding(transaction, outbox, endpoint.id);
  return { disabled: reason !== null || health.disabled, failing: health.failing };
}

function isFailure(result: EgressResult): boolean {
  return result.kind !== 'response' || result.status < 200 || result.status > 299;
}

function findDisableReason(result: EgressResult, { failedTooLong }: EndpointHealth): string | null {
  if (result.kind === 'response' && result.status === 410) return 'The receiver responded with 410 Gone.';
  return failedTooLong ? `Every attempt failed for ${MAX_FAILING_DAYS} days.` : null;
}

/** One line for the delivery's `last_error`. */
export function describeResult(result: EgressResult): string {
  if (result.kind === 'response') return `HTTP ${result.status}`;
  return result.kind === 'failed' ? result.error : `Not sent: ${result.reason}`;
}

/** The scheduled delay with jitter, or the receiver's `Retry-After` if that is longer. */
export function retryDelayMs(attempt: number, result: EgressResult, random: () => number): number {
  const scheduled = WEBHOOK_SCHEDULE_MS[attempt - 1] ?? 0;
  const jittered = scheduled * (1 + WEBHOOK_JITTER * (2 * random() - 1));
  const requested = result.kind === 'response' ? (result.retryAfterMs ?? 0) : 0;
  return Math.round(Math.max(jittered, Math.min(requested, WEBHOOK_MAX_RETRY_AFTER_MS)));
}
