import { type Expression, type SqlBool, sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { DUE_NOW } from '../../platform/database/database-time.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { PRIORITY } from '../../workflows/task-queues.contract.ts';
import {
  deliverWebhookWorkflowId,
  RETRY_DELIVERY_NOW,
  type RetryNowOptions,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { lowestEventIdSince } from '../events/event-feed.ts';
import { findEventHolds, NOT_HELD } from '../events/event-suspension.ts';
import { addDeliveries } from './add-deliveries.ts';
import type { BulkJob, SkipReason } from './bulk-job.entity.ts';
import type { DeliveryStatus, HoldReason } from './delivery.entity.ts';
import { IS_WITHDRAWN, isWithdrawn } from './delivery-state.ts';
import type { WebhookEndpoint } from './endpoint.entity.ts';
import { restartDeliveries } from './restart-deliveries.ts';

/** The progress of a replay, from which the next batch continues. */
export interface ReplayProgress {
  position: string | null;
  deliveries: number;
  expedited: number;
  skipped: Partial<Record<SkipReason, number>>;
}

export interface ReplayBatch {
  job: BulkJob;
  endpoint: WebhookEndpoint;
  /** The batch changes it. */
  progress: ReplayProgress;
  size: number;
}

/** Replays the next events, or with `onlyFailed` the next failed deliveries. @returns whether it was the last batch. */
export async function replayBatch(
  transaction: Transaction,
  outbox: Outbox,
  batch: ReplayBatch,
): Promise<boolean> {
  const { db } = transaction;
  const { job, endpoint, progress, size } = batch;
  if (job.onlyFailed) {
    const failed = await findFailedDeliveries(db, batch);
    progress.position = failed.at(-1)?.id ?? progress.position;
    await replayDeliveries(transaction, outbox, batch, idsOf(failed));
    return failed.length < size;
  }
  const events = await findNextEvents(db, batch);
  progress.position = events.at(-1)?.id ?? progress.position;
  const existing = await findDeliveryIds(db, endpoint.id, idsOf(events));
  const missing = events.filter(({ id }) => !existing.has(id));
  const deliverable = missing.filter((event) => !isWithdrawn(event));
  const holds = await findEventHolds(db, endpoint.organizationId, idsOf(deliverable));
  const isHolding = endpoint.holdingSince !== null;
  const added = deliverable.map((event) => ({
    event,
    endpoint: { ...endpoint, isHolding, ...(holds.get(event.id) ?? NOT_HELD) },
  }));
  await addDeliveries(transaction, outbox, added, PRIORITY.bulk);
  progress.deliveries += added.length;
  countSkipped(progress, 'purged', missing.length - deliverable.length);
  await replayDeliveries(transaction, outbox, batch, [...existing.values()]);
  return events.length < size;
}

const idsOf = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id);

/**
 * The next failed deliveries in order of id: settled ones, only if they settled before the job began, and those that wait for
 * their next attempt or are held. Each status is one index range.
 */
function findFailedDeliveries(db: Db, batch: ReplayBatch): Promise<{ id: string }[]> {
  const { job, endpoint, progress, size } = batch;
  const settled = sql<SqlBool>`f.completed_at < ${job.createdAt}`;
  const select = (status: DeliveryStatus, condition: Expression<SqlBool>) =>
    db
      .selectFrom(
        db
          .selectFrom('webhook_deliveries as f')
          .innerJoin('events as e', 'e.id', 'f.event_id')
          .select('f.id')
          .where('f.endpoint_id', '=', endpoint.id)
          .where('f.status', '=', status)
          .where('f.id', '>', progress.position ?? '')
          .where(condition)
          .where(matchesJob(batch))
          .orderBy('f.id')
          .limit(size)
          .as('branch'),
      )
      .select('id');
  const found = select('exhausted', settled)
    .unionAll(select('blocked', settled))
    .unionAll(select('canceled', settled))
    .unionAll(select('pending', sql<SqlBool>`f.attempts > f.prior_attempts`))
    .unionAll(select('held', sql<SqlBool>`f.attempts > 0`));
  return db.selectFrom(found.as('found')).select('id').orderBy('id').limit(size).execute();
}

/** The next events in order of id: those of the endpoint's environment and organization-wide ones. */
function findNextEvents(db: Db, batch: ReplayBatch) {
  const { endpoint, progress, size } = batch;
  // Without `data`, which may be large and is not needed here.
  const select = (condition: Expression<SqlBool>) =>
    db
      .selectFrom(
        db
          .selectFrom('events as e')
          .select([
            'e.id',
            'e.org_id as organizationId',
            'e.env_id as environmentId',
            'e.inbox_id as inboxId',
            'e.type',
            'e.redacted',
          ])
          .where('e.org_id', '=', endpoint.organizationId)
          .where(condition)
          .where('e.id', '>', progress.position ?? '')
          .where(matchesJob(batch))
          .orderBy('e.id')
          .limit(size)
          .as('branch'),
      )
      .selectAll();
  const inEnvironment = select(sql<SqlBool>`e.env_id = ${endpoint.environmentId}`);
  const ofOrganization = select(sql<SqlBool>`e.inbox_id is null and e.env_id <> ${endpoint.environmentId}`);
  return db
    .selectFrom(inEnvironment.unionAll(ofOrganization).as('found'))
    .selectAll()
    .orderBy('id')
    .limit(size)
    .execute();
}

/** SQL: the event `e` matches the job and the endpoint's subscription. */
function matchesJob({ job, endpoint: { events, inboxIds } }: ReplayBatch): Expression<SqlBool> {
  const since = job.since ?? new Date(0);
  const ofInboxes = inboxIds ? sql`and e.inbox_id = ${anyOf(inboxIds)}` : sql``;
  return sql<SqlBool>`not e.test and e.created_at >= ${since} and e.created_at < ${job.until}
    and e.id >= ${lowestEventIdSince(since)} and e.id < ${lowestIdAt('event', job.until)}
    and e.type = ${anyOf(job.eventTypes ?? events)} ${ofInboxes}`;
}

/** Maps event ids to the ids of their deliveries. */
async function findDeliveryIds(
  db: Db,
  endpointId: string,
  eventIds: readonly string[],
): Promise<Map<string, string>> {
  if (eventIds.length === 0) return new Map();
  const rows = await db
    .selectFrom('webhook_deliveries')
    .select(['id', 'event_id as eventId'])
    .where('endpoint_id', '=', endpointId)
    .where('event_id', '=', anyOf(eventIds))
    .execute();
  return new Map(rows.map(({ id, eventId }) => [eventId, id]));
}

/**
 * Restarts settled deliveries. Deliveries that wait for their next attempt become due: their runs are signaled, and no
 * run is started. Skips other deliveries.
 */
async function replayDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  { job, endpoint, progress }: ReplayBatch,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  const settled: string[] = [];
  const waiting: ReplayedDelivery[] = [];
  for (const delivery of await lockReplayed(transaction.db, job, ids)) {
    const reason = findSkipReason(delivery, endpoint);
    if (reason) countSkipped(progress, reason, 1);
    else if (delivery.status === 'pending') waiting.push(delivery);
    else settled.push(delivery.id);
  }
  if (settled.length > 0) progress.deliveries += await restartSettled(transaction, outbox, settled);
  if (waiting.length === 0) return;
  await expedite(transaction, outbox, { job, waiting });
  progress.expedited += waiting.length;
  progress.deliveries += waiting.length;
}

interface ReplayedDelivery {
  id: string;
  generation: number;
  status: DeliveryStatus;
  heldFor: HoldReason | null;
  isPurged: boolean;
  /** The last attempt failed, and the next one is due later. */
  isWaiting: boolean;
  /** An attempt is in progress, or was in progress when the job began and has settled the delivery since. */
  isInFlight: boolean;
}

/** The second statement sees an attempt that began while the first one waited for the row. */
async function lockReplayed(
  db: Db,
  { createdAt }: BulkJob,
  ids: readonly string[],
): Promise<ReplayedDelivery[]> {
  await db
    .selectFrom('webhook_deliveries')
    .select('id')
    .where('id', '=', anyOf(ids))
    .orderBy('id')
    .forNoKeyUpdate()
    .execute();
  return db
    .selectFrom('webhook_deliveries as d')
    .innerJoin('events as v', 'v.id', 'd.event_id')
    .select([
      'd.id',
      'd.generation',
      'd.status',
      'd.held_for as heldFor',
      IS_WITHDRAWN.as('isPurged'),
      sql<boolean>`coalesce(d.attempts > d.prior_attempts and d.next_attempt_at > clock_timestamp(), false)`.as(
        'isWaiting',
      ),
      sql<boolean>`exists (select from webhook_slots s where s.endpoint_id = d.endpoint_id and s.delivery_id = d.id
        and s.leased_until > clock_timestamp()) or coalesce(d.completed_at >= ${createdAt}, false)`.as(
        'isInFlight',
      ),
    ])
    .where('d.id', '=', anyOf(ids))
    .orderBy('d.id')
    .execute();
}

function findSkipReason(
  { status, heldFor, isPurged, isInFlight, isWaiting }: ReplayedDelivery,
  { holdingSince }: WebhookEndpoint,
): SkipReason | null {
  if (isPurged) return 'purged';
  if (isInFlight) return 'in_flight';
  if (status === 'held') return heldFor ?? 'endpoint_disabled';
  if (status !== 'pending') return null;
  // The probe makes the next attempt.
  if (holdingSince) return 'endpoint_failing';
  return isWaiting ? null : 'due';
}

function countSkipped(progress: ReplayProgress, reason: SkipReason, count: number): void {
  if (count > 0) progress.skipped[reason] = (progress.skipped[reason] ?? 0) + count;
}

function restartSettled(transaction: Transaction, outbox: Outbox, ids: readonly string[]): Promise<number> {
  const selection = transaction.db.selectFrom('webhook_deliveries').select('id').where('id', '=', anyOf(ids));
  return restartDeliveries(transaction, outbox, { selection, mode: 'queue' });
}

/** Makes deliveries due that wait for their next attempt, and wakes their runs. */
async function expedite(
  transaction: Transaction,
  outbox: Outbox,
  { job, waiting }: { job: BulkJob; waiting: readonly ReplayedDelivery[] },
): Promise<void> {
  await transaction.db
    .updateTable('webhook_deliveries')
    .set({ next_attempt_at: DUE_NOW })
    .where('id', '=', anyOf(idsOf(waiting)))
    .execute();
  const args: [RetryNowOptions] = [{ isDue: true }];
  for (const { id, generation } of waiting)
    outbox.enqueue(transaction, job.organizationId, {
      signal: { workflowId: deliverWebhookWorkflowId(id, generation), signalName: RETRY_DELIVERY_NOW, args },
    });
}
