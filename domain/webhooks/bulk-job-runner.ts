import { LockMode, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { dbOf } from '../../platform/database/bridge.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { joinSql, type Sql } from '../../platform/database/sql.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { type OverdueSource, takeOverdue } from '../../platform/outbox/overdue-rows.ts';
import {
  CANCEL_DELIVERY,
  deliverWebhookWorkflowId,
  RETRY_DELIVERY_NOW,
  type RetryNowOptions,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import type { Event } from '../events/event.entity.ts';
import { lowestEventIdSince } from '../events/event-feed.ts';
import { findEventHolds, NOT_HELD } from '../events/event-suspension.ts';
import { findRequesterProblem, REQUESTER_NOT_ALLOWED, type RequesterProblem } from '../identity/requester.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { recordRefusedAct } from '../notifications/notify-refused-act.ts';
import { addDelivery } from './add-delivery.ts';
import { IS_WITHDRAWN, isWithdrawn } from './attempt-outcome.ts';
import { type BulkJob, BulkJobEntity, type SkipReason } from './bulk-job.entity.ts';
import { buildBulkJobStart } from './bulk-job-start.ts';
import { type DeliveryStatus, type HoldReason, WebhookDeliveryEntity } from './delivery.entity.ts';
import { type WebhookEndpoint, WebhookEndpointEntity } from './endpoint.entity.ts';
import { restartDeliveries } from './restart-deliveries.ts';

export interface BulkJobRunner {
  /**
   * Runs the job, one batch per transaction, and resumes where an earlier run left off. Each batch asks again whether the
   * requester may do it.
   *
   * @param onProgress called after each batch with the number of deliveries changed so far.
   * @returns a one-line result for the Temporal UI.
   */
  run(jobId: string, onProgress: (deliveries: number) => void): Promise<string>;
  /** Null: the job is gone. */
  findOrganization(jobId: string): Promise<string | null>;
  /** Stops the job after the current batch. A finished job stays as it is. */
  stop(jobId: string, reason: string): Promise<void>;
}

/** Rows locked and workflows started per transaction. */
const BATCH_SIZE = 200;

export interface BulkJobRunnerOptions {
  database: Database;
  outbox: Outbox;
  notifications: Pick<NotificationService, 'notifyMembers'>;
}

export function createBulkJobRunner({
  database,
  outbox,
  notifications,
}: BulkJobRunnerOptions): BulkJobRunner {
  /** Locks the job's row, so two runs never process the same batch. */
  const runBatch = (jobId: string) =>
    database.systemTransaction(async (transaction) => {
      const { em } = transaction;
      const job = await em.findOne(BulkJobEntity, { id: jobId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
      if (job?.status !== 'running') return job;
      const endpoint = await em.findOneOrFail(WebhookEndpointEntity, { id: job.endpointId });
      const problem = await findJobProblem(em, job, endpoint);
      const stopReason = findStopReason(job, endpoint);
      if (problem) await refuseJob(transaction, notifications, job, problem);
      else if (stopReason) closeJob(job, 'stopped', stopReason);
      else await (job.kind === 'replay' ? replayBatch : cancelBatch)(transaction, outbox, job, endpoint);
      return job;
    });

  return {
    async findOrganization(jobId) {
      const job = await database.autocommit((em) => em.findOne(BulkJobEntity, { id: jobId }));
      return job?.organizationId ?? null;
    },

    async run(jobId, onProgress) {
      for (;;) {
        const job = await runBatch(jobId);
        if (!job) return 'gone';
        onProgress(job.deliveries);
        if (job.status !== 'running') return `${job.status}: ${job.deliveries} deliveries`;
        // Backpressure: the next batch waits until Temporal has accepted this one.
        await outbox.drain();
      }
    },

    stop: (jobId, reason) =>
      database.systemTransaction(async ({ em }) => {
        const job = await em.findOne(BulkJobEntity, { id: jobId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
        if (job?.status === 'running') closeJob(job, 'stopped', reason);
      }),
  };
}

function findJobProblem(
  em: EntityManager,
  { organizationId, requestedByKind: kind, requestedById: id }: BulkJob,
  { environmentId, inboxIds }: WebhookEndpoint,
): Promise<RequesterProblem | null> {
  const requester = { organizationId, actor: kind && id ? { kind, id } : null };
  // Staff ask for it through the administration, without a membership.
  if (kind === 'staff') return findRequesterProblem(dbOf(em), requester, { act: 'staff_job' });
  return findRequesterProblem(dbOf(em), requester, {
    act: 'webhook_job',
    place: { environmentId, inboxIds },
  });
}

/** What earlier batches did stays. */
async function refuseJob(
  transaction: Transaction,
  notifications: Pick<NotificationService, 'notifyMembers'>,
  job: BulkJob,
  problem: RequesterProblem,
): Promise<void> {
  const { id, organizationId, requestedByKind, requestedById } = job;
  closeJob(job, 'stopped', REQUESTER_NOT_ALLOWED);
  await recordRefusedAct(transaction, notifications, {
    organizationId,
    act: 'webhook_job',
    actor: requestedByKind && requestedById ? { kind: requestedByKind, id: requestedById } : null,
    problem,
    resource: { type: 'webhook_job', id },
  });
}

export function closeJob(job: BulkJob, status: 'completed' | 'stopped', detail: string | null): void {
  job.status = status;
  job.detail = detail;
  job.completedAt = new Date();
}

function findStopReason({ kind }: BulkJob, { deletedAt, disabled }: WebhookEndpoint): string | null {
  if (deletedAt) return 'The endpoint was deleted.';
  return disabled && kind === 'replay' ? 'The endpoint was disabled.' : null;
}

async function replayBatch(
  transaction: Transaction,
  outbox: Outbox,
  job: BulkJob,
  endpoint: WebhookEndpoint,
): Promise<void> {
  const { db, em } = transaction;
  if (job.onlyFailed) {
    const failed = await em.execute<{ id: string }[]>(selectFailedDeliveries(job, endpoint));
    job.position = failed.at(-1)?.id ?? job.position;
    await replayDeliveries(transaction, outbox, { job, endpoint }, idsOf(failed));
    if (failed.length < BATCH_SIZE) closeJob(job, 'completed', null);
    return;
  }
  const events = await findNextEvents(em, job, endpoint);
  job.position = events.at(-1)?.id ?? job.position;
  const existing = await findDeliveryIds(em, endpoint.id, idsOf(events));
  const missing = events.filter(({ id }) => !existing.has(id));
  const deliverable = missing.filter((event) => !isWithdrawn(event));
  const holds = await findEventHolds(db, endpoint.organizationId, idsOf(deliverable));
  const isHolding = endpoint.holdingSince !== null;
  for (const event of deliverable)
    addDelivery(transaction, outbox, event, { ...endpoint, isHolding, ...(holds.get(event.id) ?? NOT_HELD) });
  job.deliveries += deliverable.length;
  countSkipped(job, 'purged', missing.length - deliverable.length);
  await replayDeliveries(transaction, outbox, { job, endpoint }, [...existing.values()]);
  if (events.length < BATCH_SIZE) closeJob(job, 'completed', null);
}

const idsOf = (events: readonly { id: string }[]): string[] => events.map(({ id }) => id);

/**
 * The next failed deliveries in order of id: settled ones, only if they settled before the job began, and those that wait for
 * their next attempt or are held. Each status is one index range.
 */
function selectFailedDeliveries(job: BulkJob, endpoint: WebhookEndpoint): Sql {
  const settled = sql`f.completed_at < ${job.createdAt}`;
  const branches = (
    [
      ['exhausted', settled],
      ['blocked', settled],
      ['canceled', settled],
      ['pending', sql`f.attempts > f.prior_attempts`],
      ['held', sql`f.attempts > 0`],
    ] as const
  ).map(
    ([status, condition]) => sql`(select f.id from webhook_deliveries f join events e on e.id = f.event_id
      where f.endpoint_id = ${endpoint.id} and f.status = ${status} and f.id > ${job.position ?? ''}
        and ${condition} and ${buildEventFilter(job, endpoint)}
      order by f.id limit ${BATCH_SIZE})`,
  );
  return sql`select id from (${joinSql(branches, ' union all ')}) found order by id limit ${BATCH_SIZE}`;
}

interface ReplayedDelivery {
  id: string;
  episode: number;
  status: DeliveryStatus;
  heldFor: HoldReason | null;
  isWithdrawn: boolean;
  /** Its last attempt failed, and the next one is due later. */
  isWaiting: boolean;
  /** An attempt is under way, or was when the job began and has settled the delivery since. */
  isInFlight: boolean;
}

/**
 * Settled deliveries start again, and those that wait for their next attempt become due: their runs are signaled, and no run
 * starts. The others are skipped.
 */
async function replayDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  { job, endpoint }: { job: BulkJob; endpoint: WebhookEndpoint },
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  const { em } = transaction;
  const settled: string[] = [];
  const waiting: ReplayedDelivery[] = [];
  for (const delivery of await lockReplayed(em, job, ids)) {
    const reason = findSkipReason(delivery, endpoint);
    if (reason) countSkipped(job, reason, 1);
    else if (delivery.status === 'pending') waiting.push(delivery);
    else settled.push(delivery.id);
  }
  if (settled.length > 0)
    job.deliveries += await restartDeliveries(transaction, outbox, {
      selection: sql`select id from webhook_deliveries where id in (${settled})`,
      mode: 'queue',
    });
  if (waiting.length === 0) return;
  await em.execute(
    sql`update webhook_deliveries set next_attempt_at = now() where id in (${idsOf(waiting)})`,
  );
  const args: [RetryNowOptions] = [{ isDue: true }];
  for (const { id, episode } of waiting)
    outbox.enqueue(transaction, job.organizationId, {
      signal: { workflowId: deliverWebhookWorkflowId(id, episode), signalName: RETRY_DELIVERY_NOW, args },
    });
  job.expedited += waiting.length;
  job.deliveries += waiting.length;
}

/** The second statement sees an attempt that began while the first one waited for the row. */
async function lockReplayed(
  em: EntityManager,
  { createdAt }: BulkJob,
  ids: readonly string[],
): Promise<ReplayedDelivery[]> {
  await em.execute(sql`select id from webhook_deliveries where id in (${ids}) order by id for no key update`);
  return em.execute<ReplayedDelivery[]>(sql`
    select d.id, d.episode, d.status, d.held_for as "heldFor", ${IS_WITHDRAWN} as "isWithdrawn",
      d.attempts > d.prior_attempts and d.next_attempt_at > clock_timestamp() as "isWaiting",
      exists (select from webhook_slots s where s.endpoint_id = d.endpoint_id and s.delivery_id = d.id
        and s.leased_until > clock_timestamp()) or coalesce(d.completed_at >= ${createdAt}, false) as "isInFlight"
    from webhook_deliveries d join events v on v.id = d.event_id
    where d.id in (${ids}) order by d.id`);
}

function findSkipReason(delivery: ReplayedDelivery, { holdingSince }: WebhookEndpoint): SkipReason | null {
  const { status, heldFor, isWithdrawn: isPurged, isInFlight, isWaiting } = delivery;
  if (isPurged) return 'purged';
  if (isInFlight) return 'in_flight';
  if (status === 'held') return heldFor ?? 'endpoint_disabled';
  if (status !== 'pending') return null;
  // Its next attempt is that of the probe.
  if (holdingSince) return 'endpoint_failing';
  return isWaiting ? null : 'due';
}

function countSkipped(job: BulkJob, reason: SkipReason, count: number): void {
  if (count > 0) job.skipped = { ...job.skipped, [reason]: (job.skipped[reason] ?? 0) + count };
}

/** The next events in order of id: those of the endpoint's environment and organization-wide ones. */
async function findNextEvents(
  em: EntityManager,
  job: BulkJob,
  endpoint: WebhookEndpoint,
): Promise<(Parameters<typeof addDelivery>[2] & Pick<Event, 'redacted'>)[]> {
  // Without `data`, which may be large and is not needed here.
  const columns = sql`e.id, e.org_id as "organizationId", e.env_id as "environmentId", e.inbox_id as "inboxId", e.type, e.redacted`;
  const branch = (where: Sql) => sql`(select ${columns} from events e
    where e.org_id = ${endpoint.organizationId} and ${where} and e.id > ${job.position ?? ''}
      and ${buildEventFilter(job, endpoint)}
    order by e.id limit ${BATCH_SIZE})`;
  const inEnvironment = branch(sql`e.env_id = ${endpoint.environmentId}`);
  const ofOrganization = branch(sql`e.inbox_id is null and e.env_id <> ${endpoint.environmentId}`);
  return em.execute(
    sql`select * from (${inEnvironment} union all ${ofOrganization}) found order by id limit ${BATCH_SIZE}`,
  );
}

/** SQL condition on events `e`: those that match the job and the endpoint's subscription. */
function buildEventFilter(job: BulkJob, { events, inboxIds }: WebhookEndpoint): Sql {
  const types = job.eventTypes ?? events;
  const since = job.since ?? new Date(0);
  return sql`not e.test and e.created_at >= ${since} and e.created_at < ${job.until}
    and e.id >= ${lowestEventIdSince(since)} and e.id < ${lowestIdAt('event', job.until)}
    and e.type in (${types}) ${inboxIds ? sql`and e.inbox_id in (${inboxIds})` : sql``}`;
}

/** Maps event ids to the ids of their deliveries. */
async function findDeliveryIds(
  em: EntityManager,
  endpointId: string,
  eventIds: string[],
): Promise<Map<string, string>> {
  if (eventIds.length === 0) return new Map();
  const rows = await em.find(
    WebhookDeliveryEntity,
    { endpointId, eventId: { $in: eventIds } },
    { fields: ['id', 'eventId'] },
  );
  return new Map(rows.map(({ id, eventId }) => [eventId, id]));
}

async function cancelBatch(
  transaction: Transaction,
  outbox: Outbox,
  job: BulkJob,
  endpoint: WebhookEndpoint,
): Promise<void> {
  const rows = await transaction.em.execute<{ id: string; episode: number; hasRun: boolean }[]>(
    sql`update webhook_deliveries d
     set status = 'canceled', last_error = 'Canceled through the API.', next_attempt_at = null, completed_at = now()
     from (select id, status from webhook_deliveries
           where endpoint_id = ${endpoint.id} and status in ('pending', 'held') and created_at < ${job.until}
           limit ${BATCH_SIZE} for update) w
     where d.id = w.id
     returning d.id, d.episode, w.status = 'pending' as "hasRun"`,
  );
  for (const { id, episode, hasRun } of rows) {
    if (!hasRun) continue;
    outbox.enqueue(transaction, job.organizationId, {
      signal: { workflowId: deliverWebhookWorkflowId(id, episode), signalName: CANCEL_DELIVERY, args: [] },
    });
  }
  job.deliveries += rows.length;
  if (rows.length < BATCH_SIZE) closeJob(job, 'completed', null);
}

/** Jobs whose run is missing. If an operator ended the run, the job is stopped. */
export function overdueBulkJobs(database: Database, jobs: Pick<BulkJobRunner, 'stop'>): OverdueSource {
  return {
    name: 'webhookJobs',
    async take(limit) {
      const rows = await takeOverdue<Parameters<typeof buildBulkJobStart>[0]>(database, {
        table: 'webhook_bulk_jobs',
        overdue: `status = 'running' and created_at < now() - interval '2 minutes'`,
        columns: `id, org_id as "organizationId", env_id as "environmentId", endpoint_id as "endpointId", kind`,
        limit,
      });
      return rows.map((row) => ({
        start: buildBulkJobStart(row),
        whenStopped: () => jobs.stop(row.id, 'Stopped by an operator.'),
      }));
    },
  };
}
