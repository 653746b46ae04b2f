import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { type Config, loadConfig } from '../platform/config.ts';
import { checkInstallation } from '../platform/installation/check-installation.ts';
import { InstallationError } from '../platform/installation/installation-error.ts';
import { waitUntilReconciled } from '../platform/installation/pending-restore.ts';
import { createLogger } from '../platform/logger.ts';
import { createQueueAges } from '../platform/outbox/queue-ages.ts';
import { addConnectionMetrics, createMetricsRegistry, isMetricsToken } from '../platform/telemetry.ts';
import {
  INBOUND_QUEUE,
  MAINTENANCE_QUEUE,
  TASK_QUEUES,
  type TaskQueue,
} from '../workflows/task-queues.contract.ts';
import { type Composition, compose } from './composition.ts';
import { ensureSchedules } from './schedules.ts';
import { installRuntime, startTemporalWorkers } from './temporal-worker.ts';
import { installBacklogMetrics, installParserMetrics, installQueueAgeMetrics } from './worker-metrics.ts';

export interface StartedProcess {
  stop(): Promise<void>;
  /** Rejects when a worker fails. Resolves after `stop`. */
  done: Promise<void>;
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
    queues,
    listeners = [],
    registry,
  }: { queues: readonly TaskQueue[]; listeners?: readonly Listener[]; registry: Registry },
): Promise<StartedProcess> {
  const composition = { ...(await compose(config, logger, queues)), registry };
  await checkInstallation(composition.database, config, logger);
  addConnectionMetrics(registry, composition.database);
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
  if (queues.length > 0) await waitUntilReconciled(composition.database, logger);
  const { activities } = composition;
  const workers = queues.length > 0 ? await startTemporalWorkers({ config, logger, activities }) : undefined;
  if (queues.includes(MAINTENANCE_QUEUE) && config.SCHEDULES_ENABLED)
    await ensureSchedules(composition.temporal);
  const stopped = Promise.withResolvers<void>();
  return {
    done: workers?.done ?? stopped.promise,
    async stop() {
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
  const config = loadConfig();
  const logger = createLogger(config, name);
  const registry = createMetricsRegistry(name);
  installRuntime(logger, config);
  const health = await serveHealth(config, registry);
  const started = await startWorkers(config, logger, { ...serve, registry }).catch((error: unknown) => {
    const reason = error instanceof InstallationError ? error.message : error;
    logger.fatal({ err: error }, 'the process did not start');
    process.stderr.write(`${name} did not start: ${reason instanceof Error ? reason.stack : reason}\n`);
    process.exit(1);
  });
  health.ready = true;
  logger.info({ queues: serve.queues }, 'serving');
  let stopping: Promise<void> | undefined;
  const stop = (reason: string) => {
    stopping ??= (async () => {
      health.ready = false;
      logger.info({ reason }, 'stopping');
      await started.stop();
      await health.close();
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
  ready: boolean;
  close(): Promise<void>;
}

/** Serves `/health/live` and `/health/ready` to container probes, and `/metrics` to callers with the token. */
async function serveHealth(config: Config, registry: Registry): Promise<Health> {
  const health: Health = { ready: false, close: async () => undefined };
  if (config.WORKER_HEALTH_PORT === 0) return health;
  const server: Server = createServer((request, response) => {
    const [path] = (request.url ?? '').split('?', 1);
    if (path === '/metrics') return void serveMetrics(config, registry, request, response);
    if (path !== '/health/live' && path !== '/health/ready') return void response.writeHead(404).end();
    const ready = path === '/health/live' || health.ready;
    response.writeHead(ready ? 200 : 503, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ status: ready ? 'ok' : 'starting' }));
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
