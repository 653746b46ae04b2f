import { DefaultLogger, type LogEntry, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import type { Logger } from 'pino';
import type { Config } from '../platform/config.ts';
import { temporalConnectionOptions } from '../platform/temporal.ts';
import { loadWorkflowBundle } from './workflow-bundle.ts';

export interface RunningWorkers {
  /** Stops polling, lets what is under way end (10 s), and closes the connection. */
  stop(): Promise<void>;
  /** Rejects when a worker fails, resolves after `stop`. */
  done: Promise<void>;
}

export interface WorkerOptions {
  config: Config;
  logger: Logger;
  /** Activities of each task queue this process serves. */
  activities: Record<string, object>;
}

const SHUTDOWN_GRACE = '10 seconds';
/** Runs a queue keeps in memory; one that wakes after it was put out is replayed from its short history. */
const CACHED_WORKFLOWS = 500;
/** Workflow tasks of a queue at once: they share one thread, and what waits here is out of the server's fair order. */
const WORKFLOW_TASKS_AT_ONCE = 10;
const CONNECT_PAUSE_MS = 2_000;

/**
 * Sends the SDK's own log lines through the process's logger, and serves its metrics where an address is configured.
 * Once a process.
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

/** Serves the task queues; waits for Temporal as long as it takes. */
export async function startTemporalWorkers({
  config,
  logger,
  activities,
}: WorkerOptions): Promise<RunningWorkers> {
  const workflowBundle = await loadWorkflowBundle();
  const connection = await connect(config, logger);
  const workers = await Promise.all(
    Object.entries(activities).map(([taskQueue, ofQueue]) =>
      Worker.create({
        connection,
        namespace: config.TEMPORAL_NAMESPACE,
        taskQueue,
        workflowBundle,
        activities: ofQueue,
        shutdownGraceTime: SHUTDOWN_GRACE,
        workflowTaskPollerBehavior: { type: 'autoscaling', initial: 4 },
        activityTaskPollerBehavior: { type: 'autoscaling', initial: 4 },
        maxConcurrentWorkflowTaskExecutions: WORKFLOW_TASKS_AT_ONCE,
        maxCachedWorkflows: CACHED_WORKFLOWS,
        maxConcurrentActivityTaskExecutions: config.WORKER_CONCURRENCY,
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
      logger.warn({ address: config.TEMPORAL_ADDRESS, err: error }, 'Temporal does not answer yet');
      await new Promise((resolve) => setTimeout(resolve, CONNECT_PAUSE_MS));
    }
  }
}
