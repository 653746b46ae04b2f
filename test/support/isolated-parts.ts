import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { Client } from '@temporalio/client';
import pg from 'pg';
import { addMissingSearchAttributes } from '../../dev/stack/temporal.ts';
import { loadConfig } from '../../platform/config.ts';
import { createStorage } from '../../platform/storage.ts';
import { eventually } from './eventually.ts';
import { connectToTemporal } from './temporal-connection.ts';

export type ServiceProcess = 'api' | 'workers';

/** What an isolated service runs on. */
export interface Parts {
  /** Of each process, without ports of its own. */
  settings: Record<ServiceProcess, Record<string, string>>;
  ownerDatabaseUrl: string;
  /** Of its first organization. */
  apiKey: string;
  stop(): Promise<void>;
}

const TEMPLATE = 'agent_email_isolated';
const TEMPLATE_FILE = 'isolated.json';
const DAY_SECONDS = 86_400;

/** Reads what `npm start` has written to its folder: the settings of its processes, and the URL of its PostgreSQL as superuser. */
export function readService(dataDir: string) {
  const read = (file: string) => readFileSync(join(dataDir, file), 'utf8');
  const settings = {
    api: parseEnv(read('api.env')) as Record<string, string>,
    workers: parseEnv(read('worker.env')) as Record<string, string>,
  };
  const { host } = new URL(settings.workers.DATABASE_URL ?? '');
  const { postgresPassword } = JSON.parse(read('secrets.json')) as { postgresPassword: string };
  return { settings, postgres: `postgresql://postgres:${postgresPassword}@${host}` };
}

/** Creates the database of which isolated services get copies: migrated, with a first organization. */
export async function createTemplate(dataDir: string): Promise<void> {
  // Test files import this module and must not load the migrations with it.
  const { migrate } = await import('../../workers/migrate.ts');
  const { createDatabase } = await import('../../platform/database/database.ts');
  const { createFirstOrganization } = await import('../../domain/bootstrap/first-organization.ts');
  const { settings, postgres } = readService(dataDir);
  await execute(postgres, `create database ${TEMPLATE}`);
  await migrate({ migrationUrl: `${postgres}/${TEMPLATE}` });
  const database = createDatabase({
    url: withDatabase(settings.workers.DATABASE_URL, TEMPLATE),
    poolSize: 1,
  });
  try {
    const created = await createFirstOrganization(database, {
      organizationName: 'First organization',
      ownerEmail: 'owner@people.example',
    });
    writeFileSync(join(dataDir, TEMPLATE_FILE), JSON.stringify({ apiKey: created?.apiKey }));
  } finally {
    await database.close();
  }
}

/**
 * Creates a database, a bucket and a Temporal namespace on the servers of a running service, because starting such servers
 * takes more processor time than most tests.
 */
export async function createParts(dataDir: string): Promise<Parts> {
  const { settings, postgres } = readService(dataDir);
  const { apiKey } = JSON.parse(readFileSync(join(dataDir, TEMPLATE_FILE), 'utf8')) as { apiKey: string };
  const name = `isolated-${randomBytes(6).toString('hex')}`;
  const own = (of: Record<string, string>) => ({
    ...of,
    DATABASE_URL: withDatabase(of.DATABASE_URL, name),
    ...(of.WORKER_DATABASE_URL ? { WORKER_DATABASE_URL: withDatabase(of.WORKER_DATABASE_URL, name) } : {}),
    S3_BUCKET: name,
    TEMPORAL_NAMESPACE: name,
  });
  const workers = own(settings.workers);
  const [temporal] = await Promise.all([
    createNamespace(settings.workers.TEMPORAL_ADDRESS ?? '', name),
    createBucket(workers),
    execute(postgres, `create database "${name}" template ${TEMPLATE}`),
  ]);
  return {
    settings: { api: own(settings.api), workers },
    ownerDatabaseUrl: `${postgres}/${name}`,
    apiKey,
    async stop() {
      await temporal.stop();
      await execute(postgres, `drop database "${name}" with (force)`);
    },
  };
}

const withDatabase = (url: string | undefined, name: string): string =>
  Object.assign(new URL(url ?? ''), { pathname: `/${name}` }).toString();

async function execute(server: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: `${server}/postgres` });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

async function createBucket(settings: Record<string, string>): Promise<void> {
  const storage = createStorage(loadConfig(settings));
  await storage.ensureBucket();
  storage.close();
}

async function createNamespace(address: string, namespace: string): Promise<{ stop(): Promise<void> }> {
  const connection = await connectToTemporal(address);
  await connection.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: { seconds: DAY_SECONDS as never },
  });
  // The server reads its namespaces again every few seconds.
  await eventually(() => addMissingSearchAttributes(connection, namespace), 60_000);
  return {
    async stop() {
      const { schedule } = new Client({ connection, namespace });
      // They would go on to start workflows.
      for await (const { scheduleId } of schedule.list()) await schedule.getHandle(scheduleId).delete();
      await connection.close();
    },
  };
}
