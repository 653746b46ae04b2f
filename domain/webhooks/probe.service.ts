import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import type { EgressResult } from '../../platform/egress/egress.ts';
import { WEBHOOK_MAX_RETRY_AFTER_MS } from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { probeIntervalMs } from '../../workflows/webhooks/probe-endpoint.contract.ts';
import { createQuotaCache } from '../usage/quota-cache.ts';
import { type AttemptShare, createAttemptShare } from './attempt-slots.ts';
import { lockDueDelivery, type StartedAttempt, startAttempt } from './begin-attempt.ts';
import { type DeliveryServiceOptions, postEvent } from './delivery.service.ts';
import { updateDelivery } from './delivery-state.ts';
import { isFailing, lockProbedEndpoint, type ProbeState, stopHolding } from './endpoint-health.ts';
import { holdSuspendedDeliveries } from './hold-deliveries.ts';
import { describeResult, recordAttempt } from './record-attempt.ts';
import { RELEASE_BATCH_SIZE, releaseHeldDeliveries } from './release-held-deliveries.ts';

/** `ended`: nothing is left to do for this activity. `repeat`: call it again after `delayMs`. */
export type ProbeOutcome =
  | { kind: 'ended'; status: ProbeEnd }
  | { kind: 'repeat'; delayMs: number; detail: string };

/**
 * `recovered`: the endpoint is not failing. `failing`: the endpoint is failing. `released`: no delivery waits.
 * `superseded`: a later run is responsible.
 */
export type ProbeEnd = 'recovered' | 'failing' | 'released' | 'disabled' | 'deleted' | 'superseded';

export interface ProbeRun {
  endpointId: string;
  /** Number of the calling run; an earlier run than the current one changes nothing. */
  generation: number;
}

export type ProbeService = ReturnType<typeof createProbeService>;

/** Another attempt at the endpoint is in progress. */
const BUSY_DELAY_MS = 5_000;
/** A caller waits for the next attempt. */
const REQUESTED_DELAY_MS = 1_000;
const RELEASE_INTERVAL_MS = 1_000;
/** The next batch is released when fewer deliveries than this are due. It bounds the open runs of a long backlog. */
const MAX_DUE_BEFORE_RELEASE = RELEASE_BATCH_SIZE / 2;
/** Longer than deliveries wait for a slot, shorter than most delays of the schedule. */
const SOON_MS = 10_000;

export function createProbeService(options: DeliveryServiceOptions) {
  const { database, outbox, shares, quota = createQuotaCache({ counter: 'webhook_deliveries' }) } = options;

  const beginProbe = (run: ProbeRun & { now: boolean }, share: AttemptShare) =>
    database.systemTransaction(async ({ db }): Promise<StartedProbe | ProbeOutcome> => {
      const { end, endpoint } = await lockFailingEndpoint(db, run);
      if (end) return ended(end);
      const requestedId = await lockFirst(requestedDeliveries(db, endpoint.id));
      const firstProbeInMs = firstProbeDelayMs(endpoint);
      if (firstProbeInMs > 0 && !run.now && !requestedId)
        return repeat(firstProbeInMs, 'The first probe is due after a minute.');
      const deliveryId = requestedId ?? (await lockFirst(oldestDeliveries(db, endpoint.id)));
      if (deliveryId === null) {
        await stopHolding(db, endpoint.id);
        return ended('released');
      }
      if ((await quota.remaining(db, endpoint.organizationId)) === 0)
        return repeat(nextProbeMs(endpoint), 'Not probed: the limit of webhook_deliveries is reached.');
      const due = await lockDueDelivery(db, deliveryId);
      if (due?.ownerHold === 'organization_deleted')
        return repeat(nextProbeMs(endpoint), 'Not probed: the organization is closed.');
      if (due?.isSwitchedOff)
        return repeat(nextProbeMs(endpoint), 'Not probed: webhook deliveries are switched off.');
      if (due?.ownerHold === 'suspension') {
        await holdSuspendedDeliveries(db, endpoint.id);
        return repeat(REQUESTED_DELAY_MS, 'The oldest deliveries wait for the end of a suspension.');
      }
      if (due && !share.claim(endpoint.organizationId))
        return repeat(BUSY_DELAY_MS, 'The organization has its share of the attempts in progress.');
      const started = due && (await startAttempt(db, options, due));
      if (!started) return repeat(BUSY_DELAY_MS, 'Another attempt is in progress.');
      const priorAttempts = due.delivery.priorAttempts + 1;
      await updateDelivery(db, deliveryId, { priorAttempts, nextAttemptAt: null });
      return { ...started, deliveryId };
    });

  const afterProbe = (run: ProbeRun, result: EgressResult) =>
    database.systemTransaction(async ({ db }): Promise<ProbeOutcome> => {
      const { end, endpoint } = await lockFailingEndpoint(db, run);
      if (end) return ended(end);
      const detail = `${endpoint.consecutiveFailures} failures in a row: ${describeResult(result)}`;
      const requested = await requestedDeliveries(db, endpoint.id).executeTakeFirst();
      return repeat(requested ? REQUESTED_DELAY_MS : nextProbeMs(endpoint, result), detail);
    });

  return {
    /**
     * Makes one attempt at a failing endpoint with a held delivery: the one whose attempt a caller requested, otherwise
     * the oldest. The attempt does not count against the delivery's schedule. Ends holding if no delivery waits.
     *
     * @param run.now attempt even if the first interval has not passed.
     * @returns `ended` with `recovered` once the endpoint is not failing.
     */
    async attempt(run: ProbeRun & { now: boolean }): Promise<ProbeOutcome> {
      const share = createAttemptShare(shares);
      try {
        const started = await beginProbe(run, share);
        if (started.kind !== 'started') return started;
        const result = await postEvent(options, started);
        await recordAttempt(options, { ...started, result });
        return await afterProbe(run, result);
      } finally {
        share.release();
      }
    },

    /**
     * Starts the next held deliveries, oldest first, if most of the last batch have been attempted. With the last batch,
     * new deliveries start immediately again.
     *
     * @returns `ended` with `failing` if the endpoint fails again.
     */
    async release(run: ProbeRun): Promise<ProbeOutcome> {
      const { endpointId } = run;
      let organizationId: string | undefined;
      const outcome = await database.systemTransaction(async (transaction): Promise<ProbeOutcome> => {
        const { db } = transaction;
        const probed = await lockFailingEndpoint(db, run);
        organizationId = probed.organizationId;
        if (probed.end !== 'recovered') return ended(probed.end ?? 'failing');
        if ((await countDue(db, endpointId)) >= MAX_DUE_BEFORE_RELEASE)
          return repeat(RELEASE_INTERVAL_MS, 'Waiting until the last batch has been attempted.');
        const released = await releaseHeldDeliveries(transaction, outbox, endpointId);
        if (released === RELEASE_BATCH_SIZE)
          return repeat(RELEASE_INTERVAL_MS, `Started ${released} deliveries; more are held.`);
        await stopHolding(db, endpointId);
        return ended('released');
      });
      // Backpressure: the next batch waits until Temporal has accepted this one.
      if (organizationId !== undefined) await outbox.drain(organizationId);
      return outcome;
    },
  };
}

interface StartedProbe extends StartedAttempt {
  deliveryId: string;
}

const ended = (status: ProbeEnd): ProbeOutcome => ({ kind: 'ended', status });
const repeat = (delayMs: number, detail: string): ProbeOutcome => ({ kind: 'repeat', delayMs, detail });

interface FailingEndpoint extends ProbeState {
  holdingSince: Date;
}

type Probed =
  | { end: ProbeEnd; endpoint?: undefined; organizationId?: string }
  | { end: null; endpoint: FailingEndpoint; organizationId?: undefined };

/** Locks the endpoint. Returns it if it is failing, or else why there is nothing to probe. */
async function lockFailingEndpoint(db: Db, { endpointId, generation }: ProbeRun): Promise<Probed> {
  const endpoint = await lockProbedEndpoint(db, endpointId);
  if (!endpoint || endpoint.deletedAt) return { end: 'deleted' };
  if (endpoint.disabled) return { end: 'disabled' };
  if (endpoint.probeGeneration !== generation) return { end: 'superseded' };
  const { holdingSince } = endpoint;
  if (!holdingSince) return { end: 'released' };
  return isFailing(endpoint)
    ? { end: null, endpoint: { ...endpoint, holdingSince } }
    : { end: 'recovered', organizationId: endpoint.organizationId };
}

function firstProbeDelayMs({ holdingSince }: FailingEndpoint): number {
  return holdingSince.getTime() + probeIntervalMs(0) - Date.now();
}

/** The interval, or the receiver's `Retry-After` if that is longer. */
function nextProbeMs({ holdingSince }: FailingEndpoint, result?: EgressResult): number {
  const intervalMs = probeIntervalMs(Date.now() - holdingSince.getTime());
  const requestedMs = result?.kind === 'response' ? (result.retryAfterMs ?? 0) : 0;
  return Math.max(intervalMs, Math.min(requestedMs, WEBHOOK_MAX_RETRY_AFTER_MS));
}

/** Selects the delivery with the oldest request for an attempt. */
const requestedDeliveries = (db: Db, endpointId: string) =>
  heldDeliveries(db, endpointId).where('next_attempt_at', 'is not', null).orderBy('next_attempt_at').limit(1);

const oldestDeliveries = (db: Db, endpointId: string) =>
  heldDeliveries(db, endpointId).orderBy('id').limit(1);

const heldDeliveries = (db: Db, endpointId: string) =>
  db
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('endpoint_id', '=', endpointId)
    .where('status', '=', 'held')
    .where('held_for', '=', 'endpoint_failing');

/** Locks the first delivery, but none that a caller is canceling or retrying. */
async function lockFirst(deliveries: ReturnType<typeof heldDeliveries>): Promise<string | null> {
  const first = await deliveries.forUpdate().skipLocked().executeTakeFirst();
  return first?.id ?? null;
}

/**
 * Counts the deliveries that are due now or soon, up to the number that matters. Deliveries with a longer backoff do
 * not count.
 */
async function countDue(db: Db, endpointId: string): Promise<number> {
  const due = await db
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('endpoint_id', '=', endpointId)
    .where('status', '=', 'pending')
    .where('next_attempt_at', '<', sql<Date>`now() + ${SOON_MS} * interval '1 millisecond'`)
    .limit(MAX_DUE_BEFORE_RELEASE)
    .execute();
  return due.length;
}
