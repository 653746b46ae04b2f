import type { FastifyInstance, LightMyRequestResponse } from 'fastify';
import { pino } from 'pino';
import { buildApp } from '../../api/app.ts';
import { createServices } from '../../api/services.ts';
import { entities } from '../../domain/entities.ts';
import { type Config, loadConfig } from '../../platform/config.ts';
import { createDatabase, type Database } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { OutboxCommand } from '../../platform/outbox/outbox-command.ts';
import { createSesObjects } from '../../platform/ses-objects.ts';
import { createStorage, type Storage } from '../../platform/storage.ts';
import { type Contract, readContract } from './contract.ts';
import { testStack } from './stack.ts';

/** 32 bytes; what they are does not matter. */
const TEST_KEY = Buffer.alloc(32, 7).toString('base64');

export interface Call {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD' | 'OPTIONS';
  /** API key; none sends no credential. */
  token?: string;
  /** Sent as JSON. */
  body?: unknown;
  /** Sent as it is, with the content type given in `headers`. */
  raw?: string | Buffer;
  headers?: Record<string, string>;
}

export interface TestApp {
  readonly app: FastifyInstance;
  readonly contract: Contract;
  readonly config: Config;
  /** With the API's login, under row-level security. */
  readonly database: Database;
  /** As a worker: sees every tenant. */
  readonly worker: Database;
  /** As configured; nothing answers there unless the test starts it. */
  readonly storage: Storage;
  /** What committed changes asked of Temporal, in order. */
  readonly commands: OutboxCommand[];
  /**
   * Makes a request, and holds the answer against the description of the API.
   *
   * @param path below /api/v1.
   */
  call(path: string, call?: Call): Promise<LightMyRequestResponse>;
  close(): Promise<void>;
}

export interface TestAppOptions {
  config?: Partial<Record<keyof Config, string>>;
  probes?: { database: () => Promise<void>; temporal: () => Promise<void> };
  /** Instead of the database of the run. */
  databaseUrl?: string;
}

/** The API as it is served, on the database of the run; only Temporal is replaced, by a list of what it was asked. */
export async function startTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const { postgres } = testStack();
  const databaseUrl = options.databaseUrl ?? postgres.apiUrl;
  const config = loadConfig(testEnvironment(databaseUrl, options.config));
  const [database, worker] = await Promise.all([connect(databaseUrl), connect(postgres.workerUrl)]);
  const storage = createStorage(config);
  const sesObjects = createSesObjects(config);
  const logger = pino({ level: config.LOG_LEVEL });
  const { outbox, commands } = recordingOutbox();
  const app = await buildApp({
    config,
    logger,
    database,
    probes: options.probes ?? { database: () => database.ping(), temporal: async () => undefined },
    services: createServices({
      config,
      database,
      workerDatabase: worker,
      outbox,
      storage,
      sesObjects,
      logger,
    }),
  });
  const contract = readContract(app);
  return {
    app,
    contract,
    config,
    database,
    worker,
    storage,
    commands,
    async call(path, { method = 'GET', token, body, raw, headers } = {}) {
      const url = `/api/v1${path}`;
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
      await Promise.all([database.close(), worker.close()]);
    },
  };
}

/** Settings of a process under test; what a test does not name has the service's own default. */
export function testEnvironment(
  databaseUrl: string,
  overrides: Partial<Record<keyof Config, string>> = {},
): NodeJS.ProcessEnv {
  return {
    NODE_ENV: 'test',
    // TEST_LOG_LEVEL=error shows what is behind a 500.
    LOG_LEVEL: process.env.TEST_LOG_LEVEL ?? 'silent',
    DATABASE_URL: databaseUrl,
    ENCRYPTION_KEY: TEST_KEY,
    SIGNING_KEY: TEST_KEY,
    MAIL_DOMAIN: 'mail.test',
    // Tests of the limit lower it; the others must not meet it.
    RATE_LIMIT_PER_SECOND: '100000',
    RATE_LIMIT_BURST: '100000',
    ORGANIZATION_RATE_LIMIT_PER_SECOND: '100000',
    ORGANIZATION_RATE_LIMIT_BURST: '100000',
    ...overrides,
  };
}

export function connect(url: string): Promise<Database> {
  return createDatabase({ url, poolSize: 10, entities });
}

/** Keeps the real one's promise: a command exists once its transaction has committed, and never when it rolled back. */
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
