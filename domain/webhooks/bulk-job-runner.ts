import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import {
  CANCEL_DELIVERY,
  deliverWebhookWorkflowId,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { RUN_BULK_JOB, runBulkJobWorkflowId } from '../../workflows/webhooks/run-bulk-job.contract.ts';
import { findRequesterProblem, REQUESTER_NOT_ALLOWED, type RequesterProblem } from '../identity/requester.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { recordRefusedAct } from '../notifications/notify-refused-act.ts';
import { type BulkJob, BulkJobEntity } from './bulk-job.entity.ts';
import { type WebhookEndpoint, WebhookEndpointEntity } from './endpoint.entity.ts';
import { type ReplayProgress, replayBatch } from './replay-events.ts';

/** Rows locked and workflows started per transaction. */
const BATCH_SIZE = 200;
/** Below the heartbeat timeout of the job's activity. */
const PROGRESS_INTERVAL_MS = 10_000;

export interface BulkJobRunnerOptions {
  database: Database;
  outbox: Outbox;
  notifications: Pick<NotificationService, 'notifyMembers'>;
  /** How often a job that waits for Temporal reports its progress. Default: 10 s. */
  progressIntervalMs?: number;
}

export type BulkJobRunner = ReturnType<typeof createBulkJobRunner>;

export function createBulkJobRunner({
  database,
  outbox,
  notifications,
  progressIntervalMs = PROGRESS_INTERVAL_MS,
}: BulkJobRunnerOptions) {
  /** Locks the job's row, so two runs never process the same batch. */
  const runBatch = (jobId: string) =>
    database.systemTransaction(async (transaction) => {
      const { db } = transaction;
      const job = await lockJob(db, jobId);
      if (job?.status !== 'running') return job;
      const endpoint = await readEndpoint(db, job.endpointId);
      const problem = await findJobProblem(db, job, endpoint);
      if (problem) return refuseJob(transaction, notifications, job, problem);
      const stopReason = findStopReason(job, endpoint);
      if (stopReason) return closeJob(db, jobId, { status: 'stopped', detail: stopReason });
      const progress: ReplayProgress = { ...job, skipped: { ...job.skipped } };
      const batch = { job, endpoint, progress, size: BATCH_SIZE };
      const isLast = await (job.kind === 'replay' ? replayBatch : cancelBatch)(transaction, outbox, batch);
      return saveProgress(db, jobId, progress, isLast);
    });

  return {
    /** Returns null if the job no longer exists. */
    async findOrganization(jobId: string): Promise<string | null> {
      const job = await database.db
        .selectFrom('webhook_bulk_jobs')
        .select('org_id as organizationId')
        .where('id', '=', jobId)
        .executeTakeFirst();
      return job?.organizationId ?? null;
    },

    /**
     * Runs the job, one batch per transaction, and resumes where an earlier run left off. Each batch checks again
     * whether the requester still has the permission.
     *
     * @param onProgress called with the number of deliveries changed so far: after each batch, and while the job waits for
     * Temporal.
     * @returns a one-line result for the Temporal UI.
     */
    async run(jobId: string, onProgress: (deliveries: number) => void): Promise<string> {
      for (;;) {
        const job = await runBatch(jobId);
        if (!job) return 'gone';
        onProgress(job.deliveries);
        if (job.status !== 'running') return `${job.status}: ${job.deliveries} deliveries`;
        // Backpressure: the next batch waits until Temporal has accepted this one. Its starts rest while others use Temporal.
        const drained = outbox.drain(job.organizationId).then(() => true);
        while (!(await Promise.race([drained, pause(progressIntervalMs, false, { ref: false })])))
          onProgress(job.deliveries);
      }
    },

    /** Stops the job after the current batch. A finished job stays as it is. */
    stop: (jobId: string, reason: string): Promise<void> => stopJob(database, jobId, reason),
  };
}

function lockJob(db: Db, jobId: string): Promise<BulkJob | undefined> {
  return db
    .selectFrom('webhook_bulk_jobs')
    .select(columnsOf(BulkJobEntity))
    .where('id', '=', jobId)
    .forUpdate()
    .executeTakeFirst();
}

function readEndpoint(db: Db, endpointId: string): Promise<WebhookEndpoint> {
  return db
    .selectFrom('webhook_endpoints')
    .select(columnsOf(WebhookEndpointEntity))
    .where('id', '=', endpointId)
    .executeTakeFirstOrThrow(() => new Error(`The endpoint ${endpointId} of a job is gone`));
}

function findJobProblem(
  db: Db,
  { organizationId, requestedByKind: kind, requestedById: id }: BulkJob,
  { environmentId, inboxIds }: WebhookEndpoint,
): Promise<RequesterProblem | null> {
  const requester = { organizationId, actor: kind && id ? { kind, id } : null };
  // Staff request jobs through the administration, without a membership.
  if (kind === 'staff') return findRequesterProblem(db, requester, { act: 'staff_job' });
  return findRequesterProblem(db, requester, { act: 'webhook_job', place: { environmentId, inboxIds } });
}

/** The changes of earlier batches stay. */
async function refuseJob(
  transaction: Transaction,
  notifications: Pick<NotificationService, 'notifyMembers'>,
  { id, organizationId, requestedByKind, requestedById }: BulkJob,
  problem: RequesterProblem,
): Promise<BulkJob> {
  await recordRefusedAct(transaction, notifications, {
    organizationId,
    act: 'webhook_job',
    actor: requestedByKind && requestedById ? { kind: requestedByKind, id: requestedById } : null,
    problem,
    resource: { type: 'webhook_job', id },
  });
  return closeJob(transaction.db, id, { status: 'stopped', detail: REQUESTER_NOT_ALLOWED });
}

function findStopReason({ kind }: BulkJob, { deletedAt, disabled }: WebhookEndpoint): string | null {
  if (deletedAt) return 'The endpoint was deleted.';
  return disabled && kind === 'replay' ? 'The endpoint was disabled.' : null;
}

/** @returns whether it was the last batch. */
async function cancelBatch(
  transaction: Transaction,
  outbox: Outbox,
  { job, endpoint, progress, size }: Parameters<typeof replayBatch>[2],
): Promise<boolean> {
  const { db } = transaction;
  const rows = await db
    .updateTable('webhook_deliveries as d')
    .from(
      db
        .selectFrom('webhook_deliveries')
        .select(['id', 'status'])
        .where('endpoint_id', '=', endpoint.id)
        .where('status', 'in', ['pending', 'held'])
        .where('created_at', '<', job.until)
        .limit(size)
        .forUpdate()
        .as('waiting'),
    )
    .set({
      status: 'canceled',
      last_error: 'Canceled through the API.',
      next_attempt_at: null,
      completed_at: sql`now()`,
    })
    .whereRef('d.id', '=', 'waiting.id')
    .returning(['d.id', 'd.generation', sql<boolean>`waiting.status = 'pending'`.as('hasRun')])
    .execute();
  for (const { id, generation, hasRun } of rows) {
    if (!hasRun) continue;
    outbox.enqueue(transaction, job.organizationId, {
      signal: { workflowId: deliverWebhookWorkflowId(id, generation), signalName: CANCEL_DELIVERY, args: [] },
    });
  }
  progress.deliveries += rows.length;
  return rows.length < size;
}

function saveProgress(
  db: Db,
  jobId: string,
  { position, deliveries, expedited, skipped }: ReplayProgress,
  isLast: boolean,
): Promise<BulkJob | undefined> {
  return db
    .updateTable('webhook_bulk_jobs')
    .set({
      position,
      deliveries,
      expedited,
      skipped: json(skipped),
      ...(isLast ? { status: 'completed', completed_at: new Date() } : {}),
    })
    .where('id', '=', jobId)
    .returning(columnsOf(BulkJobEntity))
    .executeTakeFirst();
}

/** Sets the final status of a running job. The caller has locked the job. */
export function closeJob(
  db: Db,
  jobId: string,
  { status, detail }: Pick<BulkJob, 'status' | 'detail'>,
): Promise<BulkJob> {
  return db
    .updateTable('webhook_bulk_jobs')
    .set({ status, detail, completed_at: new Date() })
    .where('id', '=', jobId)
    .returning(columnsOf(BulkJobEntity))
    .executeTakeFirstOrThrow(() => new Error(`The job ${jobId} is gone`));
}

async function stopJob({ db }: Pick<Database, 'db'>, jobId: string, reason: string): Promise<void> {
  await db
    .updateTable('webhook_bulk_jobs')
    .set({ status: 'stopped', detail: reason, completed_at: new Date() })
    .where('id', '=', jobId)
    .where('status', '=', 'running')
    .execute();
}

/** Operators find the run by endpoint (`ResourceId`) and job (`RelatedId`). */
export function buildBulkJobStart(
  job: Pick<BulkJob, 'id' | 'organizationId' | 'environmentId' | 'endpointId' | 'kind'>,
): StartCommand {
  return {
    workflowType: RUN_BULK_JOB,
    workflowId: runBulkJobWorkflowId(job.id),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.bulk, fairnessKey: job.organizationId },
    input: { jobId: job.id },
    searchAttributes: {
      OrgId: job.organizationId,
      EnvId: job.environmentId,
      ResourceId: job.endpointId,
      RelatedId: job.id,
      Stage: job.kind === 'replay' ? 'replaying' : 'canceling',
    },
    summary: `${job.kind === 'replay' ? 'Replay events to' : 'Cancel pending deliveries to'} ${job.endpointId}`,
  };
}

/** Jobs whose run is missing. If an operator ended the run, the job is stopped. */
export function overdueBulkJobs(database: Database): OverdueSource {
  const { db } = database;
  return {
    name: 'webhookJobs',
    async take(limit) {
      const overdue = db
        .selectFrom('webhook_bulk_jobs')
        .select('id')
        .where('status', '=', 'running')
        .where('created_at', '<', minutesAgo(2));
      const rows = await db
        .updateTable('webhook_bulk_jobs')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit }))
        .returning([
          'id',
          'org_id as organizationId',
          'env_id as environmentId',
          'endpoint_id as endpointId',
          'kind',
        ])
        .execute();
      return rows.map((row) => ({
        start: buildBulkJobStart(row),
        whenStopped: () => stopJob(database, row.id, 'Stopped by an operator.'),
      }));
    },
  };
}

const PURGE_BATCH_SIZE = 1_000;

/** Deletes bulk jobs that are older than the retention of events. Returns how many. */
export async function purgeBulkJobs({ db }: Database, retentionDays: number): Promise<number> {
  const cutoff = lowestIdAt('bulkJob', new Date(Date.now() - retentionDays * 86_400_000));
  const old = db
    .selectFrom('webhook_bulk_jobs')
    .select('id')
    .where('id', '<', cutoff)
    .orderBy('id')
    .limit(PURGE_BATCH_SIZE);
  const { numDeletedRows } = await db
    .deleteFrom('webhook_bulk_jobs')
    .where('id', 'in', old)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
