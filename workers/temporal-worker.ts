import { DefaultLogger, type LogEntry, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { Config } from '../platform/config.ts';
import { temporalConnectionOptions } from '../platform/temporal.ts';
import {
  INBOUND_QUEUE,
  MAINTENANCE_QUEUE,
  OUTBOUND_QUEUE,
  type TaskQueue,
  WEBHOOKS_QUEUE,
} from '../workflows/task-queues.contract.ts';
import { loadWorkflowBundle } from './workflow-bundle.ts';

export interface RunningWorkers {
  /** Stops polling, waits up to 10 s for work in progress, and closes the connection. */
  stop(): Promise<void>;
  /** Rejects when a worker fails, resolves after `stop`. */
  done: Promise<void>;
}

export interface WorkerOptions {
  config: Config;
  logger: Logger;
  /** Activities by task queue. The process polls these queues. */
  activities: Partial<Record<TaskQueue, object>>;
}

const SHUTDOWN_GRACE = '10 seconds';
/** Maximum workflow runs in memory per queue. An evicted run is replayed from its short history. */
const MAX_CACHED_WORKFLOWS = 500;
/**
 * Workflow tasks share one thread, and the server's fairness does not apply to tasks that wait here. Those of `outbound`
 * mostly wait for replies: fewer slots would delay sends while the Temporal server is slow. One of `inbound` parses and
 * stores a whole message, in a local activity.
 */
const MAX_CONCURRENT_WORKFLOW_TASKS: Record<TaskQueue, number> = {
  [OUTBOUND_QUEUE]: 40,
  [INBOUND_QUEUE]: 10,
  [WEBHOOKS_QUEUE]: 10,
  [MAINTENANCE_QUEUE]: 10,
};
/** In a process that sends too: receiving would otherwise take its thread and its database connections from sends. */
const MAX_CONCURRENT_INBOUND_BESIDE_OUTBOUND = 4;
const CONNECT_RETRY_DELAY_MS = 2_000;

/**
 * Forwards the SDK's log lines to the process's logger, and serves the SDK's metrics if an address is configured. Call it
 * once per process.
 */
export function installRuntime(
  logger: Logger,
  { TEMPORAL_METRICS_ADDRESS: bindAddress }: Pick<Config, 'TEMPORAL_METRICS_ADDRESS'>,
): void {
  const forward = ({ level, message, meta }: LogEntry) => {
    const known = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;
    logger[known[level]]({ sdk: meta }, message);
  };
  const metrics = bindAddress && {
    prometheus: { bindAddress, countersTotalSuffix: true, unitSuffix: true, useSecondsForDurations: true },
  };
  Runtime.install({
    logger: new DefaultLogger('INFO', forward),
    shutdownSignals: [],
    ...(metrics ? { telemetryOptions: { metrics } } : {}),
  });
}

/** Polls the task queues. Retries until Temporal responds. */
export async function startTemporalWorkers({
  config,
  logger,
  activities,
}: WorkerOptions): Promise<RunningWorkers> {
  const workflowBundle = await loadWorkflowBundle();
  const connection = await connect(config, logger);
  const slots = (queue: TaskQueue, limit: number) =>
    queue === INBOUND_QUEUE && OUTBOUND_QUEUE in activities
      ? Math.min(limit, MAX_CONCURRENT_INBOUND_BESIDE_OUTBOUND)
      : limit;
  const workers = await Promise.all(
    (Object.entries(activities) as [TaskQueue, object][]).map(([taskQueue, ofQueue]) =>
      Worker.create({
        connection,
        namespace: config.TEMPORAL_NAMESPACE,
        taskQueue,
        workflowBundle,
        activities: ofQueue,
        shutdownGraceTime: SHUTDOWN_GRACE,
        workflowTaskPollerBehavior: { type: 'autoscaling', initial: 4 },
        activityTaskPollerBehavior: { type: 'autoscaling', initial: 4 },
        maxConcurrentWorkflowTaskExecutions: slots(taskQueue, MAX_CONCURRENT_WORKFLOW_TASKS[taskQueue]),
        // Nearly all runs of the inbound queue end in their first task. With a cache, polls of its sticky queue would hold
        // slots in which nothing ever runs.
        maxCachedWorkflows: taskQueue === INBOUND_QUEUE ? 0 : MAX_CACHED_WORKFLOWS,
        maxConcurrentActivityTaskExecutions: slots(taskQueue, config.WORKER_CONCURRENCY),
        maxConcurrentLocalActivityExecutions: config.WORKER_CONCURRENCY,
      }),
    ),
  );
  const done = Promise.all(workers.map((worker) => worker.run())).then(() => undefined);
  return {
    done,
    async stop() {
      for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
      await done.catch(() => undefined);
      await connection.close();
    },
  };
}

async function connect(config: Config, logger: Logger): Promise<NativeConnection> {
  for (;;) {
    try {
      return await NativeConnection.connect(temporalConnectionOptions(config));
    } catch (error) {
      logger.warn({ address: config.TEMPORAL_ADDRESS, err: error }, 'Temporal is not reachable, retrying');
      await new Promise((resolve) => setTimeout(resolve, CONNECT_RETRY_DELAY_MS));
    }
  }
}
