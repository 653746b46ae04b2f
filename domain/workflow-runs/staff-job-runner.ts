import { sql } from 'kysely';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { type JsonParameter, json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import {
  lockOverdue,
  minutesAgo,
  type OverdueSource,
  RECONCILED,
} from '../../platform/outbox/overdue-rows.ts';
import type { WorkflowRun, WorkflowRuns } from '../../platform/temporal-runs/workflow-run.ts';
import {
  findRequesterProblem,
  REQUESTER_NOT_ALLOWED,
  REQUESTER_PROBLEMS,
  type RequesterProblem,
} from '../identity/requester.ts';
import type { AuditedStaff } from '../staff/record-staff-audit.ts';
import { applyAction } from './apply-action.ts';
import { findAmbiguousMessages, findOpenRecipients } from './find-ambiguous.ts';
import { describeAll, matches, toIndexFilter } from './list-runs.ts';
import { planAction, type RunActionRequest } from './plan-action.ts';
import { keyOf, resolveItem } from './resolve-item.ts';
import { StaffJobEntity, type StaffJobProblem } from './staff-job.entity.ts';
import { buildStaffJobStart } from './staff-job.service.ts';
import { toActedRun } from './workflow-run.service.ts';

type StaffJob = RowOf<typeof StaffJobEntity>;

export interface StaffJobRunnerOptions {
  database: Database;
  outbox: Outbox;
  runs: WorkflowRuns;
}

const BATCH_SIZE = 50;
/** A job ends after this number; another job can process the rest. */
const MAX_RUNS = 10_000;
const MAX_PROBLEMS = 100;

/** The result of one batch. */
interface Batch {
  /** Null after the last one. */
  position: string | null;
  matched: number;
  problems: StaffJobProblem[];
}

export type StaffJobRunner = ReturnType<typeof createStaffJobRunner>;

export function createStaffJobRunner(options: StaffJobRunnerOptions) {
  const { database, outbox } = options;
  const { db } = database;
  return {
    /**
     * Runs the job batch by batch, and resumes where an earlier run left off. A batch interrupted by a crash is repeated;
     * its signals then arrive twice, which has no effect. Stops if its author has lost the role meanwhile.
     *
     * @param onProgress called after each batch with the number of runs seen so far.
     * @returns a one-line result for the Temporal UI.
     */
    async run(jobId: string, onProgress: (matched: number) => void): Promise<string> {
      for (;;) {
        const job = await db
          .selectFrom('staff_jobs')
          .select(columnsOf(StaffJobEntity))
          .where('id', '=', jobId)
          .executeTakeFirst();
        if (!job) return 'gone';
        if (job.status !== 'running')
          return `${job.status}: ${job.accepted} of ${job.matched} accepted${job.detail ? `; ${job.detail}` : ''}`;
        const problem = await findAuthorProblem(db, job);
        if (problem) {
          await stop(db, jobId, `${REQUESTER_NOT_ALLOWED}: ${REQUESTER_PROBLEMS[problem]}`);
          continue;
        }
        const batch = await (job.items ? resolveBatch(options, job) : actOnBatch(options, job));
        await saveProgress(db, job, batch);
        onProgress(job.matched + batch.matched);
        // Backpressure: the next batch waits until Temporal has accepted this one.
        await outbox.drain();
      }
    },

    /** Stops the job after the current batch. A finished job stays as it is. */
    stop: (jobId: string): Promise<void> => stop(db, jobId, 'Stopped by an operator.'),
  };
}

async function stop(db: Db, jobId: string, detail: string): Promise<void> {
  await db
    .updateTable('staff_jobs')
    .set({ status: 'stopped', detail, completed_at: new Date() })
    .where('id', '=', jobId)
    .where('status', '=', 'running')
    .execute();
}

const findAuthorProblem = (db: Db, { staffId: id }: StaffJob): Promise<RequesterProblem | null> =>
  findRequesterProblem(db, { organizationId: null, actor: { kind: 'staff', id } }, { act: 'staff_job' });

async function actOnBatch(options: StaffJobRunnerOptions, job: StaffJob): Promise<Batch> {
  const { runs } = options;
  if (!job.filter) return { position: null, matched: 0, problems: [] };
  const limit = Math.min(Date.parse(job.filter.startedBefore ?? '') || Infinity, job.createdAt.getTime());
  const filter = { ...job.filter, startedBefore: new Date(limit) };
  const page = { limit: BATCH_SIZE, token: job.position ?? undefined };
  const { runs: listed, nextToken } = await runs.list(toIndexFilter(filter), page);
  const found = (await describeAll(runs, listed)).filter((run) => matches(run, filter));
  const problems: StaffJobProblem[] = [];
  for (const run of found) {
    const error = await act(options, job, run);
    if (error !== undefined) problems.push({ target: run.workflowId, error });
  }
  return { position: nextToken, matched: found.length, problems };
}

/** @returns why the run was left out. */
async function act(
  { database, outbox, runs }: StaffJobRunnerOptions,
  job: StaffJob,
  run: WorkflowRun,
): Promise<string | undefined> {
  const request = requestOf(job);
  try {
    const planned = await planAction(run, request, {
      readStart: (closed) => runs.readStart(closed),
      findOpenRecipients: async (messageId) =>
        (await findOpenRecipients(database.db, [messageId])).get(messageId),
    });
    await database.systemTransaction((transaction) =>
      applyAction(transaction, { outbox, staff: staffOf(job) }, { run: toActedRun(run), request, planned }),
    );
    return undefined;
  } catch (error) {
    if (error instanceof AppError && error.code === 'conflict') return `${error.detail} ${error.fix}`;
    throw error;
  }
}

async function resolveBatch({ database, outbox }: StaffJobRunnerOptions, job: StaffJob): Promise<Batch> {
  const start = Number(job.position ?? 0);
  const items = (job.items ?? []).slice(start, start + BATCH_SIZE);
  const ambiguous = items.length > 0 ? await findAmbiguousMessages(database.db, items.map(keyOf)) : [];
  const problems: StaffJobProblem[] = [];
  for (const item of items) {
    const { message, resolution } = item;
    const request = { ...requestOf(job), resolution };
    const error = await resolveItem({ database, outbox, staff: staffOf(job) }, item, { request, ambiguous });
    if (error !== undefined) problems.push({ target: message, error });
  }
  const end = start + items.length;
  return { position: end < (job.items?.length ?? 0) ? String(end) : null, matched: items.length, problems };
}

const requestOf = ({ action, note, resolution, createdAt }: StaffJob): RunActionRequest => ({
  action,
  note,
  decidedAt: createdAt,
  ...(resolution === null ? {} : { resolution }),
});

const staffOf = ({ staffId, sessionId, ip, requestId }: StaffJob): AuditedStaff => ({
  staffId,
  person: { sessionId },
  ip,
  requestId,
});

/** Saves the progress unless the job was stopped meanwhile. */
async function saveProgress(db: Db, job: StaffJob, { position, matched, problems }: Batch): Promise<void> {
  const seen = job.matched + matched;
  const isFull = seen >= MAX_RUNS && position !== null;
  const isDone = position === null || isFull;
  const kept = problems.slice(0, MAX_PROBLEMS - job.problems.length);
  await db
    .updateTable('staff_jobs')
    .set((eb) => ({
      position,
      matched: seen,
      accepted: eb('accepted', '+', matched - problems.length),
      refused: eb('refused', '+', problems.length),
      problems: sql<JsonParameter<StaffJobProblem[]>>`problems || ${json(kept)}`,
      status: isDone ? 'completed' : 'running',
      completed_at: isDone ? new Date() : null,
      detail: isFull ? `Ended after ${MAX_RUNS} runs; create another job for the rest.` : null,
    }))
    .where('id', '=', job.id)
    .where('status', '=', 'running')
    .execute();
}

/** Jobs whose run is missing. If an operator ended the run, the job is stopped. */
export function overdueStaffJobs({ db }: Database, jobs: Pick<StaffJobRunner, 'stop'>): OverdueSource {
  return {
    name: 'staffJobs',
    async take(limit) {
      const overdue = db
        .selectFrom('staff_jobs')
        .select('id')
        .where('status', '=', 'running')
        .where('created_at', '<', minutesAgo(2));
      const rows = await db
        .updateTable('staff_jobs')
        .set(RECONCILED)
        .where('id', '=', lockOverdue(overdue, { limit }))
        .returning(['id', 'staff_id as staffId', 'action'])
        .execute();
      return rows.map((row) => ({ start: buildStaffJobStart(row), whenStopped: () => jobs.stop(row.id) }));
    },
  };
}

/** The service's log keeps the actions of jobs for longer. */
const RETENTION_DAYS = 90;
const PURGED_AT_ONCE = 1_000;

/** Deletes old jobs with their lists. Returns how many. */
export async function purgeStaffJobs({ db }: Database): Promise<number> {
  const cutoff = lowestIdAt('staffJob', new Date(Date.now() - RETENTION_DAYS * 86_400_000));
  const old = db
    .selectFrom('staff_jobs')
    .select('id')
    .where('id', '<', cutoff)
    .where('status', '<>', 'running')
    .orderBy('id')
    .limit(PURGED_AT_ONCE);
  const purged = await db.deleteFrom('staff_jobs').where('id', 'in', old).executeTakeFirst();
  return Number(purged.numDeletedRows);
}
