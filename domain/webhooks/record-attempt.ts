import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { EgressResult } from '../../platform/egress/egress.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import {
  WEBHOOK_JITTER,
  WEBHOOK_MAX_RETRY_AFTER_MS,
  WEBHOOK_SCHEDULE_MS,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import {
  type AttemptOutcome,
  attemptsInEpisode,
  GONE,
  HELD,
  HELD_WHILE_FAILING,
  retryLater,
  settleAs,
  settled,
  terminalChange,
} from './attempt-outcome.ts';
import { closeAttempt, closeDelivered } from './attempt-slots.ts';
import type { StartedAttempt } from './begin-attempt.ts';
import { type DeliveryChange, lockDelivery, updateDelivery } from './delivery-rows.ts';
import {
  clearFailures,
  disableEndpoint,
  MAX_FAILING_DAYS,
  recordFailure,
  startHolding,
} from './endpoint-health.ts';
import { wakeProbe } from './probe-start.ts';

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
  };
  // The common case needs one statement and no transaction.
  if (!isFailure(result) && endpoint.failingSince === null) {
    const delivered = await options.database.autocommit((em) => closeDelivered(em, attempt));
    if (delivered) return { kind: 'settled', status: 'delivered', detail: '' };
  }
  return recordInTransaction(options, finished, attempt);
}

async function recordInTransaction(
  { database, outbox, notifications, random }: RecordOptions,
  { deliveryId, number, endpoint, result }: FinishedAttempt,
  attempt: Parameters<typeof closeDelivered>[1],
): Promise<AttemptOutcome> {
  return database.systemTransaction(async (transaction) => {
    const { em } = transaction;
    const delivery = await lockDelivery(em, deliveryId);
    if (!delivery) return GONE;
    const detail = describeResult(result);
    const failed = isFailure(result);
    await closeAttempt(em, { ...attempt, error: failed ? detail : null });
    if (!failed && endpoint.failingSince !== null) {
      const recovered = await clearFailures(em, endpoint.id);
      // A held delivery was attempted by the probe itself.
      if (recovered && delivery.status === 'pending') wakeProbe(transaction, outbox, recovered);
    }
    const health = failed ? await recordFailure(em, endpoint.id) : null;
    const disableReason = findDisableReason(result, health);
    if (disableReason !== null) {
      await disableEndpoint(transaction, notifications, {
        endpointId: endpoint.id,
        reason: disableReason,
        attempt: { deliveryId, number },
      });
    } else if (health?.needsProbe) await startHolding(transaction, outbox, endpoint.id);
    // A delivery that was held during the attempt still counts as delivered if the receiver accepted it.
    if (delivery.status !== 'pending' && delivery.status !== 'held') return settled(delivery);
    const recorded = { lastStatusCode: attempt.statusCode, lastError: failed ? detail : null };
    const settle = (change: DeliveryChange) => settleAs(em, delivery, { ...recorded, ...change });
    if (!failed) return settle({ ...terminalChange('delivered', null), heldFor: null });
    if (result.kind === 'blocked') return settle({ ...terminalChange('blocked', detail), heldFor: null });
    if (disableReason !== null || health?.disabled) return settle(HELD);
    if (delivery.status === 'held') return settle({});
    if (attemptsInEpisode(delivery) >= WEBHOOK_SCHEDULE_MS.length)
      return settle(terminalChange('exhausted', detail));
    if (health?.failing) return settle(HELD_WHILE_FAILING);
    const delayMs = retryDelayMs(attemptsInEpisode(delivery) + 1, result, random);
    await updateDelivery(em, deliveryId, { ...recorded, nextAttemptAt: new Date(Date.now() + delayMs) });
    return retryLater({ ...delivery, ...recorded }, delayMs);
  });
}

function isFailure(result: EgressResult): boolean {
  return result.kind !== 'response' || result.status < 200 || result.status > 299;
}

function findDisableReason(result: EgressResult, health: { failedTooLong: boolean } | null): string | null {
  if (result.kind === 'response' && result.status === 410) return 'The receiver responded with 410 Gone.';
  return health?.failedTooLong ? `Every attempt failed for ${MAX_FAILING_DAYS} days.` : null;
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
