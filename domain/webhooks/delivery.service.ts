import { LockMode } from '@mikro-orm/core';
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
import { type WebhookDelivery, WebhookDeliveryEntity } from './delivery.entity.ts';
import { DeliveryAttemptEntity } from './delivery-attempt.entity.ts';
import { type WebhookEndpoint, WebhookEndpointEntity } from './endpoint.entity.ts';
import { secretContext } from './endpoint-secret.ts';
import { type Event, EventEntity } from './event.entity.ts';

/** `retry`: nothing is decided yet, come again after `delayMs`. `settled`: the delivery's status says what it is. */
export type AttemptOutcome =
  | { kind: 'settled'; status: string; detail: string }
  | { kind: 'retry'; delayMs: number; attempts: number; detail: string };

export interface DeliveryService {
  /**
   * Makes one attempt if one is due, and records it. The attempt's row is committed before the receiver is called, so
   * that one cut short shows.
   *
   * @param now attempt although the schedule says later.
   */
  attempt(deliveryId: string, now: boolean): Promise<AttemptOutcome>;
  /** Gives a delivery up; one that is settled stays as it is. Returns its status. */
  cancel(deliveryId: string): Promise<string>;
}

export interface DeliveryServiceOptions {
  database: Database;
  egress: Pick<Egress, 'post'>;
  secretBox: SecretBox;
  timeoutMs: number;
  /** 0 ≤ x < 1, for the jitter. */
  random: () => number;
}

interface DueAttempt {
  number: number;
  endpoint: WebhookEndpoint;
  event: Event;
}

const MAX_ANSWER_BYTES = 65_536;
const KEPT_ANSWER_BYTES = 4_096;

export function createDeliveryService(options: DeliveryServiceOptions): DeliveryService {
  const { database, egress, secretBox, timeoutMs, random } = options;
  return {
    async attempt(deliveryId, now) {
      const due = await begin(database, deliveryId, now);
      if ('kind' in due) return due;
      const { endpoint, event, number } = due;
      const body = envelopeOf(event);
      const secret = secretBox.open(endpoint.secret, secretContext(endpoint.id));
      const timestampSeconds = Math.floor(Date.now() / 1000);
      const result = await egress.post(endpoint.url, {
        headers: {
          'content-type': 'application/json',
          'user-agent': 'agent-email-webhooks/1',
          ...signWebhook({ secret, eventId: event.id, timestampSeconds, body }),
        },
        body,
        timeoutMs,
        maxResponseBytes: MAX_ANSWER_BYTES,
        keepBytes: KEPT_ANSWER_BYTES,
      });
      return settle(database, { deliveryId, number, result, random });
    },

    cancel: (deliveryId) =>
      database.systemTransaction(async ({ em }) => {
        const delivery = await em.findOne(
          WebhookDeliveryEntity,
          { id: deliveryId },
          { lockMode: LockMode.PESSIMISTIC_WRITE },
        );
        if (!delivery) return 'gone';
        if (delivery.status === 'pending') close(delivery, 'canceled', 'Canceled by an operator.');
        return delivery.status;
      }),
  };
}

/** The envelope of the specification, as the bytes that are signed and sent. */
export function envelopeOf(event: Event): string {
  return JSON.stringify({
    id: event.id,
    type: event.type,
    timestamp: event.createdAt.toISOString(),
    org_id: event.organizationId,
    env_id: event.environmentId,
    data: event.data,
  });
}

async function begin(
  database: Database,
  deliveryId: string,
  now: boolean,
): Promise<DueAttempt | AttemptOutcome> {
  return database.systemTransaction(async ({ em }) => {
    const delivery = await em.findOne(
      WebhookDeliveryEntity,
      { id: deliveryId },
      { lockMode: LockMode.PESSIMISTIC_WRITE },
    );
    if (!delivery) return { kind: 'settled', status: 'gone', detail: 'The delivery no longer exists.' };
    if (delivery.status !== 'pending') return settled(delivery);
    const endpoint = await em.findOneOrFail(WebhookEndpointEntity, { id: delivery.endpointId });
    if (endpoint.deletedAt) return settled(close(delivery, 'canceled', 'The endpoint was deleted.'));
    if (endpoint.disabled) return settled(hold(delivery));
    const waitMs = (delivery.nextAttemptAt?.getTime() ?? 0) - Date.now();
    if (waitMs > 0 && !now) return retryLater(delivery, waitMs);
    if (triesOf(delivery) >= WEBHOOK_SCHEDULE_MS.length) return settled(exhaust(delivery));
    const event = await em.findOneOrFail(EventEntity, { id: delivery.eventId });
    delivery.attempts += 1;
    em.persist(
      em.create(DeliveryAttemptEntity, {
        deliveryId,
        number: delivery.attempts,
        organizationId: delivery.organizationId,
        startedAt: new Date(),
      }),
    );
    return { number: delivery.attempts, endpoint, event };
  });
}

interface Settlement {
  deliveryId: string;
  number: number;
  result: EgressResult;
  random: () => number;
}

async function settle(
  database: Database,
  { deliveryId, number, result, random }: Settlement,
): Promise<AttemptOutcome> {
  return database.systemTransaction(async ({ em }) => {
    const delivery = await em.findOneOrFail(
      WebhookDeliveryEntity,
      { id: deliveryId },
      { lockMode: LockMode.PESSIMISTIC_WRITE },
    );
    const detail = describe(result);
    const failed = result.kind !== 'answer' || result.status < 200 || result.status > 299;
    await em.nativeUpdate(
      DeliveryAttemptEntity,
      { deliveryId, number },
      {
        finishedAt: new Date(),
        durationMs: result.kind === 'blocked' ? 0 : result.durationMs,
        statusCode: result.kind === 'answer' ? result.status : null,
        responseBody: result.kind === 'answer' ? storableText(result.body) : null,
        error: failed ? detail : null,
      },
    );
    if (delivery.status !== 'pending') return settled(delivery);
    delivery.lastStatusCode = result.kind === 'answer' ? result.status : null;
    delivery.lastError = failed ? detail : null;
    if (!failed) return settled(close(delivery, 'delivered', null));
    if (result.kind === 'blocked') return settled(close(delivery, 'blocked', detail));
    if (result.kind === 'answer' && result.status === 410) {
      await em.nativeUpdate(
        WebhookEndpointEntity,
        { id: delivery.endpointId },
        { disabled: true, disabledReason: 'The receiver answered 410 Gone.', updatedAt: new Date() },
      );
      return settled(hold(delivery));
    }
    if (triesOf(delivery) >= WEBHOOK_SCHEDULE_MS.length) return settled(exhaust(delivery));
    const delayMs = pauseBefore(triesOf(delivery) + 1, result, random);
    delivery.nextAttemptAt = new Date(Date.now() + delayMs);
    return retryLater(delivery, delayMs);
  });
}

/** Attempts the schedule counts: those of this episode. */
function triesOf({ attempts, attemptsBefore }: WebhookDelivery): number {
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

function close(
  delivery: WebhookDelivery,
  status: 'delivered' | 'canceled' | 'blocked' | 'exhausted',
  detail: string | null,
): WebhookDelivery {
  delivery.status = status;
  delivery.lastError = detail;
  delivery.nextAttemptAt = null;
  delivery.completedAt = new Date();
  return delivery;
}

/** Waits without a run until the endpoint is enabled again. */
function hold(delivery: WebhookDelivery): WebhookDelivery {
  delivery.status = 'held';
  delivery.nextAttemptAt = null;
  return delivery;
}

function exhaust(delivery: WebhookDelivery): WebhookDelivery {
  return close(delivery, 'exhausted', delivery.lastError);
}

function settled(delivery: WebhookDelivery): AttemptOutcome {
  return { kind: 'settled', status: delivery.status, detail: delivery.lastError ?? '' };
}

function retryLater(delivery: WebhookDelivery, delayMs: number): AttemptOutcome {
  return { kind: 'retry', delayMs, attempts: delivery.attempts, detail: delivery.lastError ?? 'not due yet' };
}
