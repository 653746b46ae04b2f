import { Context } from '@temporalio/activity';
import type { Logger } from 'pino';
import type { Outbox } from '../platform/outbox/outbox.ts';
import type { OverdueRun, OverdueSource } from '../platform/outbox/overdue-rows.ts';
import type { WorkflowGateway } from '../platform/outbox/workflow-gateway.ts';
import { asFailure } from './failures.ts';

export interface MaintenanceActivityOptions {
  outbox: Pick<Outbox, 'sweep'>;
  workflows: WorkflowGateway;
  sources: OverdueSource[];
  /** Further work of a sweep, by the name it is counted under; each returns how many rows it changed. */
  chores: Record<string, () => Promise<number>>;
  logger: Logger;
}

export type MaintenanceActivities = ReturnType<typeof createMaintenanceActivities>;

const OUTBOX_BATCH = 200;
const OUTBOX_BATCHES = 50;
const ROWS_A_SOURCE = 500;
const LOOK_UPS_AT_ONCE = 10;

export function createMaintenanceActivities(options: MaintenanceActivityOptions) {
  return {
    /**
     * One sweep.
     *
     * @returns counts, for the Temporal UI.
     */
    reconcileOverdue: (): Promise<Record<string, number>> =>
      asFailure(async () => {
        const counts: Record<string, number> = { outbox: await sweepOutbox(options.outbox) };
        for (const source of options.sources) {
          const runs = await source.take(ROWS_A_SOURCE);
          counts[source.name] = runs.length;
          await eachAtOnce(runs, LOOK_UPS_AT_ONCE, (run) => lookAfter(options, run));
        }
        return { ...counts, ...(await doChores(options.chores)) };
      }),
  };
}

/** Storage that refuses deletions must not keep the others from being done; the run fails of it all the same. */
async function doChores(chores: MaintenanceActivityOptions['chores']): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const failures: unknown[] = [];
  for (const [name, chore] of Object.entries(chores)) {
    Context.current().heartbeat();
    await chore().then(
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
  let dispatched = 0;
  for (let batch = 0; batch < OUTBOX_BATCHES; batch += 1) {
    Context.current().heartbeat();
    const count = await outbox.sweep(OUTBOX_BATCH);
    dispatched += count;
    if (count < OUTBOX_BATCH) break;
  }
  return dispatched;
}

/** A row that cannot be helped now does not keep the others from help; its turn comes again. */
async function lookAfter({ workflows, logger }: MaintenanceActivityOptions, run: OverdueRun): Promise<void> {
  Context.current().heartbeat();
  const { workflowId } = run.start;
  try {
    const status = await workflows.statusOf(workflowId);
    if (status === 'RUNNING') {
      if (run.whenRunning) await workflows.dispatch({ signal: run.whenRunning });
      return;
    }
    if (status === 'COMPLETED') {
      // A run that ended well leaves a final row; this is a defect, and a second start would be refused.
      logger.error({ workflowId }, 'overdue row with a completed run');
      return;
    }
    const stopped = status === 'CANCELLED' || status === 'TERMINATED';
    const settles = stopped && run.whenStopped !== 'restart';
    logger.warn({ workflowId, status, action: settles ? 'settle' : 'restart' }, 'overdue row without a run');
    if (stopped && run.whenStopped !== 'restart') await run.whenStopped();
    else await workflows.dispatch({ start: run.start });
  } catch (error) {
    logger.error({ workflowId, err: error }, 'overdue row could not be looked after');
  }
}

async function eachAtOnce<T>(items: T[], lanes: number, work: (item: T) => Promise<void>): Promise<void> {
  const queue = items.values();
  const lane = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
