import { resolve } from 'node:path';
import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { pino } from 'pino';
import { buildApp } from '../../api/app.ts';
import type { SiteFiles } from '../../api/docs/site-files.ts';
import { createServices } from '../../api/services.ts';
import { createFileReader } from '../../domain/attachments/text/file-reader.ts';
import { createHtmlConverter } from '../../domain/mime/converter/pool.ts';
import { type Config, loadConfig } from '../../platform/config.ts';
import { createDatabase, type Database } from '../../platform/database/database.ts';
import { createDependencies, type Dependencies } from '../../platform/dependencies.ts';
import type { GuardedFetch } from '../../platform/egress/guarded-fetch.ts';
import { createOutbox, type Outbox } from '../../platform/outbox/outbox.ts';
import type { OutboxCommand } from '../../platform/outbox/outbox-command.ts';
import type { QueueAges } from '../../platform/outbox/queue-ages.ts';
import type { WorkflowGateway } from '../../platform/outbox/workflow-gateway.ts';
import { createSesObjects } from '../../platform/ses-objects.ts';
import { createStorage, type Storage } from '../../platform/storage.ts';
import type { ScheduleReader } from '../../platform/temporal-runs/schedule-reader.ts';
import { type Contract, readContract } from './contract.ts';
import { FakeWorkflowRuns } from './fake-workflow-runs.ts';
import { testStack } from './stack.ts';

/** Any 32 bytes. */
const TEST_KEY = Buffer.alloc(32, 7).toString('base64');

/** Hashes with the parameters of the service take 64 MiB and a tenth of a second each. */
export const QUICK_HASH = { memoryKib: 8, passes: 1, parallelism: 1 };

export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS';
  /** API key; unset sends no credential. */
  token?: string;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent unchanged, with the content type in `headers`. */
  raw?: string | Buffer;
  headers?: Record<string, string>;
  /** What `path` is relative to; default: /api/v1. */
  prefix?: string;
}

export interface TestApp {
  readonly app: FastifyInstance;
  readonly contract: Contract;
  readonly config: Config;
  /** With the API's login, under row-level security. */
  readonly database: Database;
  /** With the workers' login, which sees every tenant. */
  readonly worker: Database;
  /** As configured. The test has to start a server if it uses storage. */
  readonly storage: Storage;
  /** The Temporal commands of committed changes, in order. */
  readonly commands: OutboxCommand[];
  /** What Temporal has. */
  readonly temporalRuns: FakeWorkflowRuns;
  /**
   * Makes a request and checks the response against the OpenAPI description.
   *
   * @param path relative to `prefix`.
   */
  call(path: string, call?: Call): Promise<LightMyRequestResponse>;
  close(): Promise<void>;
}

export interface TestAppOptions {
  config?: Partial<Record<keyof Config, string>>;
  /** Replaces the state of what the API needs. By default the database is asked, and the others are available. */
  dependencies?: Dependencies;
  queueAges?: QueueAges;
  schedules?: ScheduleReader;
  /** Gets the commands through a real outbox, in place of the list `commands`. */
  workflows?: Pick<WorkflowGateway, 'dispatch'>;
  /** Replaces the database of the test run. */
  databaseUrl?: string;
  /** The same for the workers' login. */
  workerUrl?: string;
  /** Replaces HTTP to addresses that strangers choose. */
  guardedFetch?: GuardedFetch;
  /** How long a body may stand still. */
  bodyStallTimeoutMs?: number;
  /** Replaces the site of the documents. */
  readSite?: () => Promise<SiteFiles>;
  /** Takes each line of the log, from `info`. */
  onLogLine?: (line: LogLine) => void;
}

export interface LogLine {
  /** pino's: 50 is an error. */
  level: number;
  msg: string;
}

const probesOf = (database: Database) => ({
  database: () => database.ping(),
  temporal: async () => undefined,
  storage: async () => undefined,
});

/** Builds the API with the database of the test run. Only Temporal is replaced, by a list of commands. */
export async function startTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const { postgres } = testStack();
  const databaseUrl = options.databaseUrl ?? postgres.apiUrl;
  const config = loadConfig(testEnvironment(databaseUrl, options.config));
  const [database, worker] = await Promise.all([
    connect(databaseUrl),
    connect(options.workerUrl ?? postgres.workerUrl),
  ]);
  const storage = createStorage(config);
  const sesObjects = createSesObjects(config);
  const converter = createHtmlConverter({
    entry: resolve(import.meta.dirname, '../../workers/html-converter.ts'),
    processes: 1,
  });
  const fileReader = createFileReader({
    entry: resolve(import.meta.dirname, '../../workers/file-reader.ts'),
  });
  const { onLogLine } = options;
  const logger = onLogLine
    ? pino({ level: 'info' }, { write: (line) => onLogLine(JSON.parse(line)) })
    : pino({ level: config.LOG_LEVEL });
  const { workflows } = options;
  const { outbox, commands } = workflows
    ? { outbox: createOutbox({ database, workflows, logger }), commands: [] }
    : recordingOutbox();
  const temporalRuns = new FakeWorkflowRuns();
  const app = await buildApp({
    config,
    logger,
    database,
    dependencies: options.dependencies ?? createDependencies({ probes: probesOf(database), logger }),
    queueAges: options.queueAges ?? { read: async () => ({}) },
    bodyStallTimeoutMs: options.bodyStallTimeoutMs,
    readSite: options.readSite,
    services: createServices({
      temporalRuns,
      schedules: options.schedules ?? { list: async () => [], find: async () => undefined },
      config,
      database,
      workerDatabase: worker,
      outbox,
      storage,
      sesObjects,
      converter,
      fileReader,
      logger,
      guardedFetch: options.guardedFetch,
      passwordParameters: QUICK_HASH,
    }),
  });
  const contract = readContract(app, config.PUBLIC_URL);
  return {
    app,
    contract,
    config,
    database,
    worker,
    storage,
    commands,
    temporalRuns,
    async call(path, { method = 'GET', token, body, raw, headers, prefix = '/api/v1' } = {}) {
      const url = `${prefix}${path}`;
      const response = await app.inject({
        method,
        url,
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        payload: raw ?? (body === undefined ? undefined : JSON.stringify(body)),
      });
      contract.verify(method, url, response);
      return response;
    },
    async close() {
      await app.close();
      storage.close();
      sesObjects.close();
      await Promise.all([converter.close(), fileReader.close()]);
      await Promise.all([database.close(), worker.close()]);
    },
  };
}

/** Settings of a process under test. Others have their default. */
export function testEnvironment(
  databaseUrl: string,
  overrides: Partial<Record<keyof Config, string>> = {},
): NodeJS.ProcessEnv {
  return {
    NODE_ENV: 'test',
    // TEST_LOG_LEVEL=error shows the cause of a 500.
    LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'silent',
    DATABASE_URL: databaseUrl,
    ENCRYPTION_KEY: TEST_KEY,
    SIGNING_KEY: TEST_KEY,
    MAIL_DOMAIN: 'mail.test',
    // Tests of rate limits lower them; other tests must not reach them.
    RATE_LIMIT_PER_SECOND: '100000',
    RATE_LIMIT_BURST: '100000',
    ORGANIZATION_RATE_LIMIT_PER_SECOND: '100000',
    ORGANIZATION_RATE_LIMIT_BURST: '100000',
    ...overrides,
  };
}

export function connect(url: string): Database {
  return createDatabase({ url, poolSize: 10 });
}

/** Like the real outbox: records a command once its transaction has committed, and not if it rolls back. */
export function recordingOutbox(): { outbox: Outbox; commands: OutboxCommand[] } {
  const commands: OutboxCommand[] = [];
  const outbox: Outbox = {
    enqueue({ afterCommit }, _organizationId, command) {
      afterCommit(() => commands.push(command));
    },
    sweep: async () => 0,
    drain: async () => undefined,
  };
  return { outbox, commands };
}
