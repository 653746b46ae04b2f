import type { EntityManager } from '@mikro-orm/postgresql';

/** Attempts under way at one endpoint, over all workers. */
export const ATTEMPTS_AT_ONCE = 10;
/** Failures in a row after which an endpoint counts as dead, and is asked by one attempt at a time. */
export const DEAD_AFTER_FAILURES = 10;

export interface NewAttempt {
  deliveryId: string;
  number: number;
  organizationId: string;
  endpointId: string;
  /** Slots this attempt may take one of: the first so many of the endpoint. */
  slots: number;
  /** Longer than an attempt can last. */
  leaseMs: number;
}

/**
 * Takes a slot, writes the attempt's row and counts it, on the locked delivery as well, in one statement, which waits for
 * nobody: slots others are just taking are passed over.
 *
 * @returns the slot; null where none is free, and nothing was written.
 */
export async function openAttempt(em: EntityManager, attempt: NewAttempt): Promise<number | null> {
  const taken = await take(em, attempt);
  if (taken.slot !== null || taken.known) return taken.slot;
  await em.execute(
    `insert into webhook_slots (endpoint_id, slot, org_id, leased_until)
     select ?, slot, ?, 'epoch' from generate_series(0, ?) slot on conflict do nothing`,
    [attempt.endpointId, attempt.organizationId, ATTEMPTS_AT_ONCE - 1],
  );
  return (await take(em, attempt)).slot;
}

async function take(
  em: EntityManager,
  { deliveryId, number, organizationId, endpointId, slots, leaseMs }: NewAttempt,
): Promise<{ slot: number | null; known: boolean }> {
  const [taken] = await em.execute<{ slot: number | null; known: boolean }[]>(
    `with free as (
       select slot from webhook_slots where endpoint_id = ? and slot < ? and leased_until <= clock_timestamp()
       order by slot limit 1 for update skip locked),
     taken as (
       update webhook_slots s
       set leased_until = clock_timestamp() + ? * interval '1 millisecond', delivery_id = ?
       from free where s.endpoint_id = ? and s.slot = free.slot returning s.slot),
     opened as (
       insert into webhook_delivery_attempts (delivery_id, number, org_id, started_at)
       select ?, ?, ?, clock_timestamp() from taken),
     counted as (
       insert into usage_deltas (org_id, counter, at, amount)
       select ?, 'webhook_deliveries', clock_timestamp(), 1 from taken),
     tried as (
       update webhook_deliveries set attempts = ? where id = ? and exists (select from taken))
     select (select slot from taken) as slot,
       exists (select from webhook_slots where endpoint_id = ?) as known`,
    [
      endpointId,
      slots,
      leaseMs,
      deliveryId,
      endpointId,
      deliveryId,
      number,
      organizationId,
      organizationId,
      number,
      deliveryId,
      endpointId,
    ],
  );
  return taken ?? { slot: null, known: true };
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

/** Records how an attempt ended and gives its slot back, in one statement. */
export async function closeAttempt(em: EntityManager, result: AttemptResult): Promise<void> {
  const { deliveryId, number, endpointId, slot, durationMs, statusCode, responseBody, error } = result;
  await em.execute(
    `with freed as (
       update webhook_slots set leased_until = 'epoch' where endpoint_id = ? and slot = ? and delivery_id = ?)
     update webhook_delivery_attempts
     set finished_at = clock_timestamp(), duration_ms = ?, status_code = ?, response_body = ?, error = ?
     where delivery_id = ? and number = ?`,
    [endpointId, slot, deliveryId, durationMs, statusCode, responseBody, error, deliveryId, number],
  );
}

/**
 * Records that a delivery has arrived: itself, its attempt and the slot, in one statement.
 *
 * @returns false, and nothing is written, where it counts as something else by now.
 */
export async function closeArrived(
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
  const arrived = await em.execute<{ id: string }[]>(
    `with arrived as (
       update webhook_deliveries
       set status = 'delivered', last_status_code = ?, last_error = null, next_attempt_at = null,
         completed_at = clock_timestamp()
       where id = ? and status in ('pending', 'held')
       returning id),
     freed as (
       update webhook_slots set leased_until = 'epoch'
       where endpoint_id = ? and slot = ? and delivery_id in (select id from arrived)),
     closed as (
       update webhook_delivery_attempts
       set finished_at = clock_timestamp(), duration_ms = ?, status_code = ?, response_body = ?, error = null
       where delivery_id in (select id from arrived) and number = ?)
     select id from arrived`,
    [statusCode, deliveryId, endpointId, slot, durationMs, statusCode, responseBody, number],
  );
  return arrived.length > 0;
}
