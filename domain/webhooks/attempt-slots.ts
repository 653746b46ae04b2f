import { sql } from 'kysely';
import {
  createFairShare,
  type FairShare,
  organizationHolder,
  type Release,
  thirdOf,
} from '../../platform/concurrency/fair-share.ts';
import { compileOnce } from '../../platform/database/compile-once.ts';
import { type JsonParameter, json } from '../../platform/database/json.ts';
import { PREPARED } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import { insertUsageDeltas } from '../usage/count-usage.ts';
import type { UsageCounter } from '../usage/counters.ts';

/** Attempts in progress at one endpoint, across all workers. */
export const MAX_CONCURRENT_ATTEMPTS = 10;

export interface NewAttempt {
  deliveryId: string;
  number: number;
  organizationId: string;
  endpointId: string;
  /** The attempt may take one of the endpoint's first `slotCount` slots. */
  slotCount: number;
  /** Must be longer than an attempt can last. */
  leaseMs: number;
}

/**
 * Leases a slot, inserts the attempt's row and counts the attempt, both as usage and on the delivery, in one statement.
 * The caller holds the delivery's lock. Never blocks: skips slots that another transaction has locked.
 *
 * @returns the slot, or null if none is free, or if another worker still attempts the delivery; then nothing was written.
 */
export async function openAttempt(db: Db, attempt: NewAttempt): Promise<number | null> {
  const lease = await tryOpenAttempt(db, attempt);
  if (lease.slot !== null || lease.hasSlots) return lease.slot;
  const slots = Array.from({ length: MAX_CONCURRENT_ATTEMPTS }, (_, slot) => ({
    endpoint_id: attempt.endpointId,
    slot,
    org_id: attempt.organizationId,
    leased_until: NOT_LEASED,
  }));
  await db
    .insertInto('webhook_slots')
    .values(slots)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return (await tryOpenAttempt(db, attempt)).slot;
}

const NOT_LEASED = sql<Date>`'epoch'`;
/** The time of the statement, not of its transaction. */
const NOW = sql<Date>`clock_timestamp()`;

async function tryOpenAttempt(
  db: Db,
  attempt: NewAttempt,
): Promise<{ slot: number | null; hasSlots: boolean }> {
  const [lease] = await leaseAndInsert(db, attempt);
  return lease ? { slot: lease.slot, hasSlots: Boolean(lease.hasSlots) } : { slot: null, hasSlots: true };
}

const leaseAndInsert = compileOnce(
  (db, { deliveryId, number, organizationId, endpointId, slotCount, leaseMs }: NewAttempt) =>
    db
      .with('free', (cte) =>
        cte
          .selectFrom('webhook_slots')
          .select('slot')
          .where('endpoint_id', '=', endpointId)
          .where('slot', '<', slotCount)
          .where('leased_until', '<=', NOW)
          .where((eb) =>
            eb.not(
              eb.exists(
                eb
                  .selectFrom('webhook_slots as own')
                  .select('own.slot')
                  .where('own.endpoint_id', '=', endpointId)
                  .where('own.delivery_id', '=', deliveryId)
                  .where('own.leased_until', '>', NOW),
              ),
            ),
          )
          .orderBy('slot')
          .limit(1)
          .forUpdate()
          .skipLocked(),
      )
      .with('leased', (cte) =>
        cte
          .updateTable('webhook_slots as s')
          .from('free')
          .set({
            leased_until: sql`clock_timestamp() + ${leaseMs} * interval '1 millisecond'`,
            delivery_id: deliveryId,
          })
          .where('s.endpoint_id', '=', endpointId)
          .whereRef('s.slot', '=', 'free.slot')
          .returning('s.slot'),
      )
      .with('opened', (cte) =>
        cte
          .insertInto('webhook_delivery_attempts')
          .columns(['delivery_id', 'number', 'org_id', 'started_at'])
          .expression((eb) =>
            eb
              .selectFrom('leased')
              .select([
                eb.val(deliveryId).as('delivery_id'),
                sql<number>`${number}::int`.as('number'),
                eb.val(organizationId).as('org_id'),
                NOW.as('started_at'),
              ]),
          ),
      )
      .with('counted', (cte) =>
        insertUsageDeltas(
          db,
          cte
            .selectFrom('leased')
            .select((eb) => [
              eb.val(organizationId).as('org_id'),
              sql<UsageCounter>`'webhook_deliveries'`.as('counter'),
              NOW.as('at'),
              sql<number>`1`.as('amount'),
            ]),
        ),
      )
      .with('updated', (cte) =>
        cte
          .updateTable('webhook_deliveries')
          .set({ attempts: number })
          .where('id', '=', deliveryId)
          .where((eb) => eb.exists(eb.selectFrom('leased').select('slot'))),
      )
      .selectNoFrom((eb) => [
        eb.selectFrom('leased').select('slot').as('slot'),
        eb
          .exists(eb.selectFrom('webhook_slots').select('slot').where('endpoint_id', '=', endpointId))
          .as('hasSlots'),
      ])
      .modifyEnd(PREPARED),
);

export interface AttemptResult {
  deliveryId: string;
  number: number;
  endpointId: string;
  slot: number;
  durationMs: number;
  statusCode: number | null;
  responseBody: string | null;
  responseHeaders: Record<string, string> | null;
  error: string | null;
}

/**
 * SQL: removes the text of the response if a redaction came first. `redacted` is read from the latest version of the
 * row.
 */
const keepResponse = (body: string | null) =>
  sql<string | null>`case when redacted and ${body}::text is not null then '' else ${body} end`;

/** Headers may repeat the content too. */
const keepHeaders = (headers: Record<string, string> | null) =>
  headers &&
  sql<JsonParameter<Record<string, string> | null>>`case when redacted then null else ${json(headers)} end`;

/** Records the result of an attempt and releases its slot, in one statement. */
export async function closeAttempt(db: Db, result: AttemptResult): Promise<void> {
  const { deliveryId, number, endpointId, slot, durationMs, statusCode, error } = result;
  await db
    .with('freed', (cte) =>
      cte
        .updateTable('webhook_slots')
        .set({ leased_until: NOT_LEASED })
        .where('endpoint_id', '=', endpointId)
        .where('slot', '=', slot)
        .where('delivery_id', '=', deliveryId),
    )
    .updateTable('webhook_delivery_attempts')
    .set({
      finished_at: NOW,
      duration_ms: durationMs,
      status_code: statusCode,
      response_body: keepResponse(result.responseBody),
      response_headers: keepHeaders(result.responseHeaders),
      error,
    })
    .where('delivery_id', '=', deliveryId)
    .where('number', '=', number)
    .execute();
}

/**
 * Records a successful attempt: updates the delivery and the attempt and releases the slot, in one statement.
 *
 * @returns false if the delivery is neither pending nor held; then nothing was written.
 */
export async function closeDelivered(db: Db, attempt: Omit<AttemptResult, 'error'>): Promise<boolean> {
  return (await settleDelivered(db, attempt)).length > 0;
}

const settleDelivered = compileOnce((db, attempt: Omit<AttemptResult, 'error'>) => {
  const { deliveryId, number, endpointId, slot } = attempt;
  return db
    .with('delivered', (cte) =>
      cte
        .updateTable('webhook_deliveries')
        .set({
          status: 'delivered',
          last_status_code: attempt.statusCode,
          last_error: null,
          next_attempt_at: null,
          completed_at: NOW,
        })
        .where('id', '=', deliveryId)
        .where('status', 'in', ['pending', 'held'])
        .returning('id'),
    )
    .with('freed', (cte) =>
      cte
        .updateTable('webhook_slots')
        .set({ leased_until: NOT_LEASED })
        .where('endpoint_id', '=', endpointId)
        .where('slot', '=', slot)
        .where('delivery_id', 'in', (eb) => eb.selectFrom('delivered').select('id')),
    )
    .with('closed', (cte) =>
      cte
        .updateTable('webhook_delivery_attempts')
        .set({
          finished_at: NOW,
          duration_ms: attempt.durationMs,
          status_code: attempt.statusCode,
          response_body: keepResponse(attempt.responseBody),
          response_headers: keepHeaders(attempt.responseHeaders),
          error: null,
        })
        .where('delivery_id', 'in', (eb) => eb.selectFrom('delivered').select('id'))
        .where('number', '=', number),
    )
    .selectFrom('delivered')
    .select('id')
    .modifyEnd(PREPARED);
});

/**
 * Limits the attempts that one worker makes at the same time, deliveries and probes together. An attempt may take 15 s even
 * if the receiver answers 200 in the end, so a reserve is kept for organizations within their share.
 */
export function createAttemptShares(capacity: number): FairShare {
  return createFairShare({ name: 'webhook attempts', capacity, reserve: thirdOf(capacity) });
}

/**
 * Maximum number of concurrent activities of a worker: its attempts, and activities that only find that no share is
 * left, which takes one transaction.
 */
export const attemptActivities = (capacity: number): number => 2 * capacity + thirdOf(capacity);

/** Maximum number of first attempts that a worker makes in local activities, each of which occupies a workflow task. */
export const MAX_LOCAL_ATTEMPTS = 20;

export type AttemptShare = ReturnType<typeof createAttemptShare>;

/** Longer than a prompt receiver takes to respond, so that a burst to many such receivers needs no wait in Temporal. */
const SHARE_WAIT_MS = 200;

/** The share of one attempt, whose organization is known only once its delivery has been read. */
export function createAttemptShare(shares: FairShare) {
  let release: Release | null = null;
  let hasWaited = false;
  return {
    /** @returns false if the organization has no share left. A claimed share is kept until `release`. */
    claim(organizationId: string): boolean {
      release ??= shares.tryAcquire({ holders: [organizationHolder(organizationId)] });
      return release !== null;
    },
    /** Whether the attempt may still wait. It may wait once, because waiting occupies the worker. */
    shouldWait: () => !hasWaited,
    /** Waits briefly for a share. Call `claim` to learn whether one was free. */
    async wait(organizationId: string): Promise<void> {
      hasWaited = true;
      const holders = [organizationHolder(organizationId)];
      release = await shares
        .acquire({ holders, signal: AbortSignal.timeout(SHARE_WAIT_MS) })
        .catch(() => null);
    },
    release: (): void => release?.(),
  };
}
