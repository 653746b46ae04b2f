import { Context } from '@temporalio/activity';
import type { Logger } from 'pino';
import { mapConcurrently } from '../platform/concurrency/map-concurrently.ts';
import type { Outbox } from '../platform/outbox/outbox.ts';
import type { OverdueRun, OverdueSource } from '../platform/outbox/overdue-rows.ts';
import type { RunStatus, WorkflowGateway } from '../platform/outbox/workflow-gateway.ts';
import { heartbeatBetweenSteps, withHeartbeats } from './heartbeats.ts';

export interface MaintenanceActivityOptions {
  outbox: Pick<Outbox, 'sweep'>;
  workflows: WorkflowGateway;
  sources: OverdueSource[];
  /** See `findLastRestore`. */
  findLastRestore(): Promise<Date | null>;
  /** Each returns the number of changed rows, which is reported under its name. */
  sweeps: Record<string, () => Promise<number>>;
  /** Records that a whole run has succeeded: operators are alerted if none does. */
  recordSweep(): Promise<void>;
  logger: Logger;
}

export type MaintenanceActivities = ReturnType<typeof createMaintenanceActivities>;

/** One organization's batch of this size takes seconds; a minute if Temporal is so slow that it rests for long. */
const OUTBOX_BATCH_SIZE = 50;
/** After this time no batch begins, so that the rest of a run does not wait for a flood. The next run continues. */
const MAX_OUTBOX_SWEEP_MS = 90_000;
const MAX_ROWS_PER_SOURCE = 500;
const MAX_CONCURRENT_LOOKUPS = 10;

export function createMaintenanceActivities(options: MaintenanceActivityOptions) {
  return {
    /**
     * Dispatches the commands left in the outbox, recovers overdue rows and runs the sweeps. Heartbeats on a timer: a sweep
     * may take minutes while storage or the database is slow, and a second attempt would do the same work beside it.
     *
     * @returns counts, for the Temporal UI.
     */
    reconcileOverdue: (): Promise<Record<string, number>> =>
      withHeartbeats(async () => {
        const counts: Record<string, number> = { outbox: await sweepOutbox(options.outbox) };
        const restoredAt = await options.findLastRestore();
        for (const source of options.sources) {
          const runs = await source.take(MAX_ROWS_PER_SOURCE);
          counts[source.name] = runs.length;
          await mapConcurrently(runs, MAX_CONCURRENT_LOOKUPS, (run) => recoverRun(options, run, restoredAt));
        }
        const swept = await runSweeps(options.sweeps);
        await options.recordSweep();
        return { ...counts, ...swept };
      }),
  };
}

/** Runs every sweep even if one fails (storage may be down), then fails with the first error. */
async function runSweeps(sweeps: MaintenanceActivityOptions['sweeps']): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const failures: unknown[] = [];
  for (const [name, sweep] of Object.entries(sweeps)) {
    heartbeatBetweenSteps();
    await sweep().then(
      (count) => {
        counts[name] = count;
      },
      (error: unknown) => failures.push(error),
    );
  }
  if (failures.length > 0) throw failures[0];
  return counts;
}

async function sweepOutbox(outbox: Pick<Outbox, 'sweep'>): Promise<number> {
  const endsAt = Date.now() + MAX_OUTBOX_SWEEP_MS;
  let dispatched = 0;
  while (Date.now() < endsAt) {
    heartbeatBetweenSteps();
    const count = await outbox.sweep(OUTBOX_BATCH_SIZE);
    dispatched += count;
    // Organizations have equal shares, so a batch may be smaller although rows are left.
    if (count === 0) break;
  }
  return dispatched;
}

/** Logs an error instead of throwing it, so the other rows are recovered. The source returns the row again later. */
async function recoverRun(
  { workflows, logger }: MaintenanceActivityOptions,
  run: OverdueRun,
  restoredAt: Date | null,
): Promise<void> {
  Context.current().heartbeat();
  const { workflowId } = run.start;
  try {
    const { status, closedAt } = await workflows.describe(workflowId);
    if (status === 'RUNNING') {
      if (run.whenRunning) await workflows.dispatch({ signal: run.whenRunning });
      return;
    }
    if (status === 'COMPLETED' && restoredAt && closedAt && closedAt < restoredAt) {
      logger.warn({ workflowId, status }, 'restored row, whose run completed before the restore');
      await workflows.dispatch({
        start: { ...run.start, replacesCompleted: true, recovery: describeRecovery(status) },
      });
      return;
    }
    if (status === 'COMPLETED' && !run.start.replacesCompleted) {
      // A defect: after a completed run the row should be final. Temporal would reject a second start.
      logger.error({ workflowId }, 'overdue row with a completed run');
      return;
    }
    const stopped = status === 'CANCELLED' || status === 'TERMINATED';
    const settle = stopped && run.whenStopped !== 'restart' ? run.whenStopped : undefined;
    const isSettled = settle !== undefined && (await settle()) !== 'restart';
    logger.warn(
      { workflowId, status, action: isSettled ? 'settle' : 'restart' },
      'overdue row without a run',
    );
    if (!isSettled) await workflows.dispatch({ start: { ...run.start, recovery: describeRecovery(status) } });
  } catch (error) {
    logger.error({ workflowId, err: error }, 'could not recover an overdue row');
  }
}

/** For the Temporal UI, where the earlier run may not be listed any more. */
function describeRecovery(status: RunStatus): string {
  if (status === 'NOT_FOUND') return 'Started by the reconciler: the work was overdue, and no run was found.';
  return `Started again by the reconciler: the run before ended with the status ${status} and left its work overdue.`;
}
