import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { announceProcess } from '../domain/monitoring/announce-process.ts';
import { type Config, loadConfig } from '../platform/config.ts';
import {
  addDependencyMetrics,
  createDependencies,
  type Dependencies,
  probeDatabase,
} from '../platform/dependencies.ts';
import { checkInstallation } from '../platform/installation/check-installation.ts';
import { waitUntilReconciled } from '../platform/installation/pending-restore.ts';
import { createProgressMarker, detectLossAtStart } from '../platform/installation/progress-marker.ts';
import { createLogger, failStart, logProcessEvents } from '../platform/logger.ts';
import { createQueueAges } from '../platform/outbox/queue-ages.ts';
import { addConnectionMetrics, createMetricsRegistry, isMetricsToken } from '../platform/telemetry.ts';
import { pingTemporal } from '../platform/temporal.ts';
import { startTracing, type Tracing } from '../platform/tracing/tracing.ts';
import {
  INBOUND_QUEUE,
  MAINTENANCE_QUEUE,
  OUTBOUND_QUEUE,
  TASK_QUEUES,
  type TaskQueue,
} from '../workflows/task-queues.contract.ts';
import { type Composition, compose } from './composition.ts';
import { activityLogContext } from './run-context.ts';
import { schedulesFor, watchSchedules } from './schedules.ts';
import { installRuntime, startTemporalWorkers, withMetricsAddress } from './temporal-worker.ts';
import {
  installBacklogMetrics,
  installParserMetrics,
  installQueueAgeMetrics,
  installScheduleMetrics,
  installSweepMetrics,
} from './worker-metrics.ts';

export interface StartedProcess {
  stop(): Promise<void>;
  /** Rejects when a worker fails. Resolves after `stop`. */
  done: Promise<void>;
  readonly dependencies: Dependencies;
}

/** Starts a listener that a process runs besides its task queues, such as an SMTP listener. */
export type Listener = (
  composition: Composition & { registry: Registry },
) => Promise<{ close(): Promise<void> }>;

/** Polls task queues and runs listeners until `stop`. */
export async function startWorkers(
  config: Config,
  logger: Logger,
  {
    name,
    queues,
    listeners = [],
    registry,
    tracing,
  }: {
    /** As operators see the process. */
    name: string;
    queues: readonly TaskQueue[];
    listeners?: readonly Listener[];
    registry: Registry;
    tracing?: Tracing | undefined;
  },
): Promise<StartedProcess> {
  const composition = { ...(await compose(config, logger, queues)), registry };
  await checkInstallation(composition.database, config, logger);
  const dependencies = createDependencies({
    probes: {
      database: () => probeDatabase(composition.database),
      temporal: () => pingTemporal(composition.temporal),
      storage: () => composition.storage.ping(),
    },
    logger,
  });
  addConnectionMetrics(registry, composition.database);
  addDependencyMetrics(registry, dependencies);
  composition.metrics.register(registry);
  if (queues.includes(INBOUND_QUEUE)) installParserMetrics(registry, composition.parserPool());
  // The backlog is the same in every process, so only one kind of worker reports it.
  if (queues.includes(MAINTENANCE_QUEUE)) {
    const { database, temporal } = composition;
    installBacklogMetrics(registry, { database, logger });
    installQueueAgeMetrics(
      registry,
      createQueueAges({
        database,
        temporal,
        namespace: config.TEMPORAL_NAMESPACE,
        queues: TASK_QUEUES,
        onError: (error) => logger.warn({ err: error }, 'could not read the age of a queue'),
      }),
    );
  }
  // Listeners start first, because they can accept mail while Temporal is unavailable.
  const listening = await Promise.all(listeners.map((listen) => listen(composition)));
  if (queues.length > 0) {
    const marker = createProgressMarker(composition.database, composition.storage);
    await detectLossAtStart(marker, { isRequired: queues.includes(OUTBOUND_QUEUE), logger });
    await waitUntilReconciled(composition.database, logger);
  }
  const { activities, metrics } = composition;
  const workers =
    queues.length > 0
      ? await startTemporalWorkers({ config, logger, activities, tracing, metrics })
      : undefined;
  // Every worker watches them: the one that runs them may be the one that is down.
  const schedules =
    workers && config.SCHEDULES_ENABLED
      ? await watchSchedules({ temporal: composition.temporal, logger, schedules: schedulesFor(config) })
      : undefined;
  if (schedules) {
    installScheduleMetrics(registry, schedules);
    installSweepMetrics(registry, { database: composition.database, logger });
  }
  const announced = announceProcess(composition.database, { name, logger });
  const stopped = Promise.withResolvers<void>();
  return {
    done: workers?.done ?? stopped.promise,
    dependencies,
    async stop() {
      schedules?.stop();
      await announced.stop();
      await Promise.all(listening.map((listener) => listener.close()));
      await workers?.stop();
      await composition.close();
      stopped.resolve();
    },
  };
}

/** The main function of a worker process: configuration, health checks, signals and exit code. */
export async function runWorkerProcess(
  name: string,
  serve: { queues: readonly TaskQueue[]; listeners?: readonly Listener[] },
): Promise<void> {
  try {
    await run(name, serve);
  } catch (error) {
    failStart(name, error);
  }
}

async function run(
  name: string,
  serve: { queues: readonly TaskQueue[]; listeners?: readonly Listener[] },
): Promise<void> {
  const config = await withMetricsAddress(loadConfig());
  const logger = createLogger(config, name, activityLogContext);
  logProcessEvents(logger);
  const tracing = startTracing(config, { process: name, logger });
  const registry = createMetricsRegistry(name);
  // Only with queues: a runtime without a worker would keep the process from ending.
  if (serve.queues.length > 0) installRuntime(logger, config);
  const health = await serveHealth(config, registry);
  const started = await startWorkers(config, logger, { name, ...serve, registry, tracing });
  health.started = { dependencies: started.dependencies, needsTemporal: serve.queues.length > 0 };
  logger.info({ queues: serve.queues }, 'serving');
  let stopping: Promise<void> | undefined;
  const stop = (reason: string) => {
    stopping ??= (async () => {
      health.started = undefined;
      logger.info({ reason }, 'stopping');
      await started.stop();
      await health.close();
      await tracing?.stop();
      logger.info('stopped');
    })();
    return stopping;
  };
  process.once('SIGTERM', () => void stop('SIGTERM'));
  process.once('SIGINT', () => void stop('SIGINT'));
  await started.done.catch(async (error: unknown) => {
    logger.fatal({ err: error }, 'worker failed');
    process.exitCode = 1;
    await stop('failure');
  });
}

interface Health {
  /** Unset before the process serves, and again when it stops. */
  started: { dependencies: Dependencies; needsTemporal: boolean } | undefined;
  close(): Promise<void>;
}

/** Serves `/health/live` and `/health/ready` to container probes, and `/metrics` to callers with the token. */
async function serveHealth(config: Config, registry: Registry): Promise<Health> {
  const health: Health = { started: undefined, close: async () => undefined };
  if (config.WORKER_HEALTH_PORT === 0) return health;
  const server: Server = createServer((request, response) => {
    const [path] = (request.url ?? '').split('?', 1);
    if (path === '/metrics') return void serveMetrics(config, registry, request, response);
    if (path !== '/health/live' && path !== '/health/ready') return void response.writeHead(404).end();
    const readAnswer = path === '/health/live' ? async () => ({ status: 'ok' }) : () => readReadiness(health);
    void readAnswer().then((answer) => {
      const isReady = answer.status === 'ok' || answer.status === 'degraded';
      response.writeHead(isReady ? 200 : 503, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(config.WORKER_HEALTH_PORT, config.WORKER_HEALTH_HOST, resolve);
  });
  health.close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return health;
}

/**
 * A worker needs the database and Temporal, a listener only the database. Without storage both continue: most work needs
 * none, and what does is retried.
 */
async function readReadiness({ started }: Health): Promise<{ status: string; checks?: object }> {
  if (!started) return { status: 'starting' };
  const checks = await started.dependencies.read();
  const { database, temporal, storage } = checks;
  if (database !== 'ok' || (started.needsTemporal && temporal !== 'ok'))
    return { status: 'unavailable', checks };
  return { status: storage === 'ok' && temporal === 'ok' ? 'ok' : 'degraded', checks };
}

const SDK_METRICS_TIMEOUT_MS = 2_000;

async function serveMetrics(
  { METRICS_TOKEN: token, TEMPORAL_METRICS_ADDRESS: sdkAddress }: Config,
  registry: Registry,
  { headers }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (token === undefined || !isMetricsToken(token, headers.authorization)) {
    response.writeHead(401, { 'www-authenticate': 'Bearer', 'content-type': 'text/plain' });
    return void response.end(
      'Send the header "Authorization: Bearer <METRICS_TOKEN>", the value of that setting.\n',
    );
  }
  const [own, sdk] = await Promise.all([registry.metrics(), sdkAddress ? readSdkMetrics(sdkAddress) : '']);
  response.writeHead(200, { 'content-type': registry.contentType }).end(`${own}${sdk}`);
}

/** The SDK serves its metrics on another port. Returns an empty text if it does not respond. */
async function readSdkMetrics(address: string): Promise<string> {
  try {
    const signal = AbortSignal.timeout(SDK_METRICS_TIMEOUT_MS);
    return await (await fetch(`http://${address}/metrics`, { signal })).text();
  } catch {
    return '';
  }
}
