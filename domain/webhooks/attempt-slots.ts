import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import {
  createFairShare,
  type FairShare,
  organizationHolder,
  type Release,
  thirdOf,
} from '../../platform/concurrency/fair-share.ts';
import { insertUsageDeltasSql } from '../usage/count-usage.ts';

/** Attempts in progress at one endpoint, across all workers. */
export const MAX_CONCURRENT_ATTEMPTS = 10;

export interface NewAttempt {
  deliveryId: string;
  number: number;
  organizationId: string;
  endpointId: string;
  /** The attempt may take one of the endpoint's first `slotCount` slots. */
  slotCount: number;
  /** Longer than an attempt can last. */
  leaseMs: number;
}

/**
 * Leases a slot, inserts the attempt's row and counts the attempt, both as usage and on the delivery, in one statement.
 * The caller holds the delivery's lock. Never blocks: skips slots that another transaction has locked.
 *
 * @returns the slot, or null if none is free; then nothing was written.
 */
export async function openAttempt(em: EntityManager, attempt: NewAttempt): Promise<number | null> {
  const lease = await tryOpenAttempt(em, attempt);
  if (lease.slot !== null || lease.hasSlots) return lease.slot;
  await em.execute(
    sql`insert into webhook_slots (endpoint_id, slot, org_id, leased_until)
     select ${attempt.endpointId}, slot, ${attempt.organizationId}, 'epoch'
     from generate_series(0, ${MAX_CONCURRENT_ATTEMPTS - 1}) slot on conflict do nothing`,
  );
  return (await tryOpenAttempt(em, attempt)).slot;
}

async function tryOpenAttempt(
  em: EntityManager,
  { deliveryId, number, organizationId, endpointId, slotCount, leaseMs }: NewAttempt,
): Promise<{ slot: number | null; hasSlots: boolean }> {
  const [lease] = await em.execute<{ slot: number | null; hasSlots: boolean }[]>(
    sql`with free as (
       select slot from webhook_slots
       where endpoint_id = ${endpointId} and slot < ${slotCount} and leased_until <= clock_timestamp()
       order by slot limit 1 for update skip locked),
     leased as (
       update webhook_slots s
       set leased_until = clock_timestamp() + ${leaseMs} * interval '1 millisecond', delivery_id = ${deliveryId}
       from free where s.endpoint_id = ${endpointId} and s.slot = free.slot returning s.slot),
     opened as (
       insert into webhook_delivery_attempts (delivery_id, number, org_id, started_at)
       select ${deliveryId}, ${number}, ${organizationId}, clock_timestamp() from leased),
     counted as (
       ${insertUsageDeltasSql(sql`select ${organizationId}, 'webhook_deliveries', clock_timestamp(), 1 from leased`)}),
     updated as (
       update webhook_deliveries set attempts = ${number} where id = ${deliveryId} and exists (select from leased))
     select (select slot from leased) as slot,
       exists (select from webhook_slots where endpoint_id = ${endpointId}) as "hasSlots"`,
  );
  return lease ?? { slot: null, hasSlots: true };
}

export interface AttemptResult {
  deliveryId: string;
  number: number;
  endpointId: string;
  slot: number;
  durationMs: number;
  statusCode: number | null;
  responseBody: string | null;
  error: string | null;
}

/** SQL: the column of the row itself, whose latest version counts if a redaction came first. */
const keepResponse = (body: string | null) =>
  sql`case when redacted and ${body}::text is not null then '' else ${body} end`;

/** Records the result of an attempt and releases its slot, in one statement. */
export async function closeAttempt(em: EntityManager, result: AttemptResult): Promise<void> {
  const { deliveryId, number, endpointId, slot, durationMs, statusCode, responseBody, error } = result;
  await em.execute(
    sql`with freed as (
       update webhook_slots set leased_until = 'epoch'
       where endpoint_id = ${endpointId} and slot = ${slot} and delivery_id = ${deliveryId})
     update webhook_delivery_attempts
     set finished_at = clock_timestamp(), duration_ms = ${durationMs}, status_code = ${statusCode},
       response_body = ${keepResponse(responseBody)}, error = ${error}
     where delivery_id = ${deliveryId} and number = ${number}`,
  );
}

/**
 * Records a successful attempt: updates the delivery and the attempt and releases the slot, in one statement.
 *
 * @returns false if the delivery is neither pending nor held; then nothing was written.
 */
export async function closeDelivered(
  em: EntityManager,
  {
    deliveryId,
    number,
    endpointId,
    slot,
    durationMs,
    statusCode,
    responseBody,
  }: Omit<AttemptResult, 'error'>,
): Promise<boolean> {
  const delivered = await em.execute<{ id: string }[]>(
    sql`with delivered as (
       update webhook_deliveries
       set status = 'delivered', last_status_code = ${statusCode}, last_error = null, next_attempt_at = null,
         completed_at = clock_timestamp()
       where id = ${deliveryId} and status in ('pending', 'held')
       returning id),
     freed as (
       update webhook_slots set leased_until = 'epoch'
       where endpoint_id = ${endpointId} and slot = ${slot} and delivery_id in (select id from delivered)),
     closed as (
       update webhook_delivery_attempts
       set finished_at = clock_timestamp(), duration_ms = ${durationMs}, status_code = ${statusCode},
         response_body = ${keepResponse(responseBody)}, error = null
       where delivery_id in (select id from delivered) and number = ${number})
     select id from delivered`,
  );
  return delivered.length > 0;
}

/**
 * The attempts that one worker makes at the same time, deliveries and probes. An attempt lasts up to 15 s, also at a receiver
 * that answers 200 in the end, so that a reserve is left to organizations within their share.
 */
export function createAttemptShares(capacity: number): FairShare {
  return createFairShare({ name: 'webhook attempts', capacity, reserve: thirdOf(capacity) });
}

/**
 * Activities of a worker: besides the attempts those that only find out that no share is left, which takes a transaction.
 */
export const attemptActivities = (capacity: number): number => 2 * capacity + thirdOf(capacity);

/** The share of one attempt, whose organization is known only once its delivery has been read. */
export interface AttemptShare {
  /** @returns false if the organization has no share left. Once claimed, it stays so until `release`. */
  claim(organizationId: string): boolean;
  /** Whether it may still wait: once per attempt, because waiting occupies the worker. */
  shouldWait(): boolean;
  /** Waits briefly for a share; `claim` tells whether there was one. */
  wait(organizationId: string): Promise<void>;
  release(): void;
}

/** Longer than a prompt receiver takes, so that a burst to many of them needs no wait in Temporal. */
const SHARE_WAIT_MS = 200;

export function createAttemptShare(shares: FairShare): AttemptShare {
  let release: Release | null = null;
  let hasWaited = false;
  return {
    claim(organizationId) {
      release ??= shares.tryAcquire({ holders: [organizationHolder(organizationId)] });
      return release !== null;
    },
    shouldWait: () => !hasWaited,
    async wait(organizationId) {
      hasWaited = true;
      const holders = [organizationHolder(organizationId)];
      release = await shares
        .acquire({ holders, signal: AbortSignal.timeout(SHARE_WAIT_MS) })
        .catch(() => null);
    },
    release: () => release?.(),
  };
}
