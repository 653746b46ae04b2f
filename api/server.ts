import { join } from 'node:path';
import type { Logger } from 'pino';
import { createFileReader } from '../domain/attachments/text/file-reader.ts';
import { createHtmlConverter } from '../domain/mime/converter/pool.ts';
import { announceProcess } from '../domain/monitoring/announce-process.ts';
import { acceptsProviderDeliveries, type Config, loadConfig } from '../platform/config.ts';
import { createDatabase, type Database } from '../platform/database/database.ts';
import { createDependencies, probeDatabase } from '../platform/dependencies.ts';
import { checkInstallation } from '../platform/installation/check-installation.ts';
import { createLogger, failStart, logProcessEvents } from '../platform/logger.ts';
import { createOutbox } from '../platform/outbox/outbox.ts';
import { createQueueAges } from '../platform/outbox/queue-ages.ts';
import { createWorkflowGateway } from '../platform/outbox/workflow-gateway.ts';
import { createServiceMetrics } from '../platform/service-metrics.ts';
import { createSesObjects } from '../platform/ses-objects.ts';
import { createStorage } from '../platform/storage.ts';
import { createTemporalClient, pingTemporal } from '../platform/temporal.ts';
import { createScheduleReader } from '../platform/temporal-runs/schedule-reader.ts';
import { createWorkflowRuns } from '../platform/temporal-runs/workflow-runs.ts';
import { startTracing } from '../platform/tracing/tracing.ts';
import { PACED_QUEUES, TASK_QUEUES } from '../workflows/task-queues.contract.ts';
import { buildApp } from './app.ts';
import { listen } from './listen.ts';
import { warnOfOtherRpIds } from './people/warn-of-other-rp-ids.ts';
import { createServices } from './services.ts';

/** After this time the process exits even if requests are still in progress. */
const CLOSE_TIMEOUT_MS = 10_000;

export interface StartedApi {
  /** The bound port; differs from the configured port if that is 0. */
  port: number;
  /** Completes the requests in progress, then closes every connection. */
  stop(): Promise<void>;
}

export async function startApi(config: Config, logger: Logger): Promise<StartedApi> {
  const database = createDatabase({
    url: config.DATABASE_URL,
    poolSize: config.DATABASE_POOL_SIZE,
  });
  await checkInstallation(database, config, logger);
  const workerDatabase = await connectWorker(config);
  const storage = createStorage(config);
  const sesObjects = createSesObjects(config);
  const converter = createHtmlConverter({
    entry: CONVERTER_ENTRY,
    processes: config.HTML_CONVERTER_PROCESSES,
  });
  const fileReader = createFileReader({ entry: FILE_READER_ENTRY });
  const temporal = createTemporalClient(config);
  const metrics = createServiceMetrics();
  const outbox = createOutbox({
    database,
    workflows: createWorkflowGateway(temporal),
    logger,
    metrics,
    pacedQueues: PACED_QUEUES,
  });
  const services = createServices({
    temporalRuns: createWorkflowRuns(temporal, config.TEMPORAL_NAMESPACE),
    schedules: createScheduleReader(temporal),
    config,
    database,
    workerDatabase,
    outbox,
    storage,
    sesObjects,
    converter,
    fileReader,
    logger,
    metrics,
  });
  const app = await buildApp({
    config,
    logger,
    database,
    dependencies: createDependencies({
      probes: {
        database: () => probeDatabase(database),
        temporal: () => pingTemporal(temporal),
        storage: () => storage.ping(),
      },
      logger,
    }),
    queueAges: createQueueAges({
      database,
      temporal,
      namespace: config.TEMPORAL_NAMESPACE,
      queues: TASK_QUEUES,
      onError: (error) => logger.warn({ err: error }, 'could not read the age of a queue'),
    }),
    services,
    metrics,
  });
  await warnOfOtherRpIds(services.passkeyEnrollments, { publicUrl: config.PUBLIC_URL, logger });
  const { port, close } = await listen(app, { host: config.API_HOST, port: config.API_PORT });
  logger.info({ address: config.API_HOST, port }, 'the API is listening');
  const announced = announceProcess(database, { name: 'api', logger });
  return {
    port,
    async stop() {
      await close();
      await announced.stop();
      await outbox.drain();
      await temporal.connection.close();
      storage.close();
      sesObjects.close();
      await Promise.all([converter.close(), fileReader.close()]);
      await Promise.all([database.close(), workerDatabase?.close()]);
    },
  };
}

/**
 * Connects as a worker if providers deliver mail or reports to the API.
 *
 * @throws Error if `WORKER_DATABASE_URL` is missing.
 */
async function connectWorker(config: Config): Promise<Database | undefined> {
  if (!acceptsProviderDeliveries(config)) return undefined;
  if (!config.WORKER_DATABASE_URL)
    throw new Error(
      'WORKER_DATABASE_URL is required if providers deliver mail or reports to the API, or with BILLING_ENABLED',
    );
  return createDatabase({ url: config.WORKER_DATABASE_URL, poolSize: PROVIDER_POOL_SIZE });
}

const PROVIDER_POOL_SIZE = 5;
const FILE_READER_ENTRY = join(import.meta.dirname, '../workers/file-reader.ts');
const CONVERTER_ENTRY = join(import.meta.dirname, '../workers/html-converter.ts');

async function main(): Promise<void> {
  const config = loadConfig();
  const logger = createLogger(config, 'api');
  logProcessEvents(logger);
  const tracing = startTracing(config, { process: 'api', logger });
  const api = await startApi(config, logger);
  closeOnSignal(logger, async () => {
    await api.stop();
    await tracing?.stop();
  });
}

function closeOnSignal(logger: Logger, close: () => Promise<void>): void {
  let closing = false;
  const shutDown = (signal: NodeJS.Signals): void => {
    if (closing) return;
    closing = true;
    logger.info({ signal }, 'closing');
    setTimeout(() => process.exit(1), CLOSE_TIMEOUT_MS).unref();
    close().then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error({ err: error }, 'could not close cleanly');
        process.exit(1);
      },
    );
  };
  process.once('SIGTERM', shutDown);
  process.once('SIGINT', shutDown);
}

if (import.meta.main) main().catch((error: unknown) => failStart('api', error));
