import type { FairShare } from '../../platform/concurrency/fair-share.ts';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Egress, EgressResult } from '../../platform/egress/egress.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import { signWebhook } from '../../platform/webhook-signature.ts';
import { serializeEnvelope } from '../events/envelope.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { createQuotaCache, type QuotaCache } from '../usage/quota-cache.ts';
import { buildDeliveryStart } from './add-deliveries.ts';
import { type AttemptShare, createAttemptShare } from './attempt-slots.ts';
import { type AttemptRequest, beginAttempt, type StartedAttempt } from './begin-attempt.ts';
import { deliveryHeaders } from './delivery-request.ts';
import {
  type AttemptOutcome,
  GONE,
  isSuperseded,
  lockDelivery,
  SUPERSEDED,
  settleAs,
  terminalChange,
} from './delivery-state.ts';
import { recordAttempt } from './record-attempt.ts';
import { createRetryPacing } from './retry-pacing.ts';
import { createSlotWaiters } from './slot-waiters.ts';

export type DeliveryService = ReturnType<typeof createDeliveryService>;

export interface DeliveryServiceOptions {
  database: Database;
  outbox: Outbox;
  egress: Pick<Egress, 'post'>;
  secretBox: SecretBox;
  notifications: NotificationService;
  timeoutMs: number;
  /** Shares of the attempts of this worker, probes included; see `createAttemptShares`. */
  shares: FairShare;
  /** 0 ≤ x < 1, for the jitter. */
  random: () => number;
  /** How many attempts an organization may still make. */
  quota?: QuotaCache;
  /** How long an attempt waits in the worker for a slot. */
  slotWaitMs?: number;
}

const MAX_PACING_DELAY_MS = 1_800_000;
/**
 * Maximum number of attempts that wait in the worker for a slot of one slow endpoint: a fraction of the attempts a
 * worker may run.
 */
const MAX_SLOT_WAITERS = 25;
const SLOT_WAIT_MS = 500;

export function createDeliveryService(options: DeliveryServiceOptions) {
  const { database, shares, slotWaitMs = SLOT_WAIT_MS } = options;
  const { quota = createQuotaCache({ counter: 'webhook_deliveries' }) } = options;
  const pacing = createRetryPacing({ maxDelayMs: MAX_PACING_DELAY_MS, now: Date.now });
  const slotWaiters = createSlotWaiters({
    maxWaiters: MAX_SLOT_WAITERS,
    recentReleaseMs: slotWaitMs,
    now: () => performance.now(),
  });

  /**
   * A short wait for a slot saves a wait in Temporal, which costs more than the attempt itself. Another worker or a new
   * attempt may take the released slot first, so this tries again until `slotWaitMs` has passed.
   */
  async function beginOrWait(
    request: AttemptRequest,
    share: AttemptShare,
  ): Promise<StartedAttempt | AttemptOutcome> {
    const deadline = performance.now() + slotWaitMs;
    for (;;) {
      const leftMs = deadline - performance.now();
      const canWaitForSlot = (endpointId: string) => leftMs > 0 && slotWaiters.shouldWait(endpointId);
      const result = await beginAttempt({ ...options, quota, pacing, share, canWaitForSlot }, request);
      if (result.kind === 'no_share') await share.wait(result.organizationId);
      else if (result.kind === 'no_free_slot') await slotWaiters.wait(result.endpointId, leftMs);
      else return result;
    }
  }

  return {
    /**
     * Makes one attempt if one is due, and records it. The attempt's row is committed before the request is sent, so an
     * interrupted attempt stays visible.
     *
     * @param now attempt even if the schedule says later.
     * @param generation number of the calling run; an earlier run than the current one gets `superseded` and changes
     * nothing.
     */
    async attempt(deliveryId: string, now: boolean, generation?: number): Promise<AttemptOutcome> {
      // The share is kept while the attempt waits for a slot of its endpoint, because waiting also occupies the worker.
      const share = createAttemptShare(shares);
      try {
        const started = await beginOrWait({ deliveryId, now, generation }, share);
        if (started.kind !== 'started') return started;
        const end = pacing.begin([started.endpoint.id, started.event.organizationId]);
        const result = await postEvent(options, started).finally(end);
        const outcome = await recordAttempt(options, { ...started, deliveryId, result });
        slotWaiters.slotReleased(started.endpoint.id);
        return outcome;
      } finally {
        share.release();
      }
    },

    /** See {@link cancelDelivery}. */
    cancel: (deliveryId: string, generation?: number): Promise<string> =>
      cancelDelivery(database, deliveryId, generation),
  };
}

const MAX_RESPONSE_BYTES = 65_536;
const RETAINED_RESPONSE_BYTES = 4_096;

/** Sends the signed request of an attempt. */
export function postEvent(
  { egress, timeoutMs }: { egress: Pick<Egress, 'post'>; timeoutMs: number },
  { endpoint, secrets, event }: StartedAttempt,
): Promise<EgressResult> {
  const body = serializeEnvelope(event);
  const timestampSeconds = Math.floor(Date.now() / 1000);
  return egress.post(endpoint.url, {
    headers: {
      ...deliveryHeaders(event),
      ...signWebhook({ ...secrets, eventId: event.id, timestampSeconds, body }),
    },
    body,
    timeoutMs,
    maxResponseBytes: MAX_RESPONSE_BYTES,
    retainBytes: RETAINED_RESPONSE_BYTES,
  });
}

/**
 * Cancels a pending delivery if `generation` is its current run, or one that this run has put on hold. Other deliveries do not
 * change. @returns the resulting status.
 */
export function cancelDelivery(database: Database, deliveryId: string, generation?: number): Promise<string> {
  return database.systemTransaction(async ({ db }) => {
    const delivery = await lockDelivery(db, deliveryId);
    if (!delivery) return GONE.status;
    if (isSuperseded(delivery, generation)) return SUPERSEDED.status;
    if (delivery.status !== 'pending' && delivery.status !== 'held') return delivery.status;
    return (await settleAs(db, delivery, terminalChange('canceled', 'Canceled by an operator.'))).status;
  });
}

/** Deliveries whose next attempt is overdue. If an operator stopped the run, the delivery is canceled. */
export function overdueDeliveries(database: Database): OverdueSource {
  return {
    name: 'deliveries',
    async take(limit) {
      const { db } = database;
      const overdue = db
        .selectFrom('webhook_deliveries')
        .select('id')
        .where('status', '=', 'pending')
        .where('next_attempt_at', '<', minutesAgo(2));
      const rows = await db
        .updateTable('webhook_deliveries as d')
        .set(RECONCILED)
        .from('events as e')
        .whereRef('e.id', '=', 'd.event_id')
        .where('d.id', '=', lockOverdue(overdue, { limit }))
        .returning([
          'd.id',
          'd.generation',
          'd.org_id as organizationId',
          'd.endpoint_id as endpointId',
          'e.id as eventId',
          'e.env_id as environmentId',
          'e.inbox_id as inboxId',
          'e.type as eventType',
        ])
        .execute();
      return rows.map((row) => ({
        start: buildDeliveryStart(row),
        whenStopped: async () => {
          await cancelDelivery(database, row.id, row.generation);
        },
      }));
    },
  };
}
