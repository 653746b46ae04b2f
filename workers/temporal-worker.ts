import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import {
  DefaultLogger,
  type LogEntry,
  makeTelemetryFilterString,
  NativeConnection,
  Runtime,
  Worker,
} from '@temporalio/worker';
import type { Logger } from 'pino';
import { attemptActivities, MAX_LOCAL_ATTEMPTS } from '../domain/webhooks/attempt-slots.ts';
import type { Config } from '../platform/config.ts';
import type { ServiceMetrics } from '../platform/service-metrics.ts';
import { temporalConnectionOptions } from '../platform/temporal.ts';
import type { Tracing } from '../platform/tracing/tracing.ts';
import {
  INBOUND_QUEUE,
  MAINTENANCE_QUEUE,
  OUTBOUND_QUEUE,
  type TaskQueue,
  WEBHOOKS_QUEUE,
} from '../workflows/task-queues.contract.ts';
import { runContextInterceptors, runEndSinks } from './run-context.ts';
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
  tracing: Tracing | undefined;
  metrics: Pick<ServiceMetrics, 'workflowFailures'>;
}

const SHUTDOWN_GRACE = '10 seconds';
/**
 * Maximum workflow runs in memory per queue. An evicted run is replayed from its short history. Without a cache the SDK
 * evicts a run while its local activity is running, and the workflow task times out; so it may if the cache is full.
 */
const MAX_CACHED_WORKFLOWS = 500;
/**
 * Workflow tasks share one thread, and the server's fairness does not apply to tasks that wait here. Those of `outbound`
 * and `webhooks` mostly wait for replies: fewer slots would delay them while the Temporal server is slow. One of `inbound`
 * parses and stores a whole message, in a local activity: `INBOUND_CONCURRENCY` limits those.
 */
const MAX_CONCURRENT_WORKFLOW_TASKS = {
  [OUTBOUND_QUEUE]: 40,
  [WEBHOOKS_QUEUE]: 40 + MAX_LOCAL_ATTEMPTS,
  [MAINTENANCE_QUEUE]: 10,
};
const AUTOSCALED_POLLERS = { type: 'autoscaling', initial: 4 } as const;
const CONNECT_RETRY_DELAY_MS = 2_000;

/**
 * Completes the configuration with an address on this machine where the SDK serves its metrics to this process, which
 * includes them in its own. Only with a token for those.
 */
export async function withMetricsAddress(config: Config): Promise<Config> {
  if (config.TEMPORAL_METRICS_ADDRESS || !config.METRICS_TOKEN || config.WORKER_HEALTH_PORT === 0)
    return config;
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return Object.freeze({ ...config, TEMPORAL_METRICS_ADDRESS: `127.0.0.1:${port}` });
}

/**
 * Forwards the SDK's log lines to the process's logger, and serves the SDK's metrics if an address is configured. Call it
 * once per process.
 */
export function installRuntime(
  logger: Logger,
  { TEMPORAL_METRICS_ADDRESS: bindAddress }: Pick<Config, 'TEMPORAL_METRICS_ADDRESS'>,
): void {
  const metrics = bindAddress && {
    prometheus: { bindAddress, countersTotalSuffix: true, unitSuffix: true, useSecondsForDurations: true },
  };
  Runtime.install({
    logger: new DefaultLogger('INFO', (entry) => forwardLogEntry(logger, entry)),
    shutdownSignals: [],
    telemetryOptions: {
      // Without it the core prints text to standard error.
      logging: { filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }), forward: {} },
      ...(metrics ? { metrics } : {}),
    },
  });
}

/** Logs a line of the SDK with the ids at the top level, where those of the service's own lines are. */
export function forwardLogEntry(
  logger: Logger,
  { level, message, meta }: Omit<LogEntry, 'timestampNanos'>,
): void {
  const known = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const;
  const { error, workflowId, runId, workflowType, activityType, attempt, ...sdk } = (meta ?? {}) as Record<
    string,
    unknown
  >;
  const ids = { workflowId, runId, workflowType, activity: activityType, attempt };
  logger[known[level]]({ ...ids, sdk, ...(error === undefined ? {} : { err: error }) }, message);
}

/** Polls the task queues. Retries until Temporal responds. */
export async function startTemporalWorkers({
  config,
  logger,
  activities,
  tracing,
  metrics,
}: WorkerOptions): Promise<RunningWorkers> {
  const workflowBundle = await loadWorkflowBundle();
  const connection = await connect(config, logger);
  const { INBOUND_CONCURRENCY: inbound, WORKER_CONCURRENCY: activityLimit } = config;
  const activitySlots = (queue: TaskQueue) => {
    if (queue === WEBHOOKS_QUEUE) return attemptActivities(activityLimit);
    return queue === INBOUND_QUEUE ? Math.min(inbound, activityLimit) : activityLimit;
  };
  const workers = await Promise.all(
    (Object.entries(activities) as [TaskQueue, object][]).map(([taskQueue, ofQueue]) =>
      Worker.create({
        connection,
        namespace: config.TEMPORAL_NAMESPACE,
        taskQueue,
        workflowBundle,
        activities: ofQueue,
        interceptors: { activity: [runContextInterceptors] },
        sinks: runEndSinks({ tracing, failures: metrics.workflowFailures }),
        shutdownGraceTime: SHUTDOWN_GRACE,
        ...(taskQueue === INBOUND_QUEUE
          ? pollWithOneStickySlot(inbound)
          : {
              maxConcurrentWorkflowTaskExecutions: MAX_CONCURRENT_WORKFLOW_TASKS[taskQueue],
              workflowTaskPollerBehavior: AUTOSCALED_POLLERS,
            }),
        activityTaskPollerBehavior: AUTOSCALED_POLLERS,
        maxCachedWorkflows: MAX_CACHED_WORKFLOWS,
        maxConcurrentActivityTaskExecutions: activitySlots(taskQueue),
        // The activities of `webhooks` refuse local attempts beyond their limit. Here they would wait, in a workflow task.
        maxConcurrentLocalActivityExecutions:
          taskQueue === WEBHOOKS_QUEUE ? MAX_CONCURRENT_WORKFLOW_TASKS[taskQueue] : activityLimit,
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

/**
 * A poll holds a slot. Nearly all runs of received messages end in their first task, so more than one poll of the sticky
 * queue would hold slots in which nothing ever runs.
 *
 * @param concurrency new runs that are processed at the same time.
 */
function pollWithOneStickySlot(concurrency: number) {
  const slots = concurrency + 1;
  return {
    maxConcurrentWorkflowTaskExecutions: slots,
    workflowTaskPollerBehavior: { type: 'simple-maximum', maximum: slots } as const,
    // The SDK rounds the number of polls of the normal queue down; the half keeps that from losing one.
    nonStickyToStickyPollRatio: (concurrency + 0.5) / slots,
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
