import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Addresses of a test run's servers. Test files read it with {@link testStack}. */
export interface TestStack {
  postgres: { ownerUrl: string; apiUrl: string; workerUrl: string; logFile: string };
  /** Deleted after the run. */
  directory: string;
}

const VARIABLE = 'AGENT_EMAIL_TEST_STACK';

/** Belongs to Jest's parent process, so that the set-up of a second tier reuses what the first one started. */
interface Running {
  directory: string;
  facts: Promise<TestStack['postgres']> | undefined;
  stops: (() => Promise<void>)[];
}

const holder = globalThis as typeof globalThis & { agentEmailTestStack?: Running };

function running(): Running {
  if (!holder.agentEmailTestStack) {
    const directory = mkdtempSync(join(tmpdir(), 'agent-email-test-'));
    // Under root the database server runs as another user, who must be able to enter.
    chmodSync(directory, 0o755);
    holder.agentEmailTestStack = { directory, facts: undefined, stops: [] };
  }
  return holder.agentEmailTestStack;
}

/** Starts the servers unless they run, and passes their addresses to the test processes that Jest forks later. */
export async function startTestStack(): Promise<void> {
  const stack = running();
  stack.facts ??= startDatabase(stack);
  // Jest runs no teardown after a failed set-up.
  const postgres = await stack.facts.catch(async (error: unknown) => {
    await stopTestStack();
    throw error;
  });
  const facts: TestStack = { postgres, directory: stack.directory };
  process.env[VARIABLE] = JSON.stringify(facts);
}

export async function stopTestStack(): Promise<void> {
  const stack = holder.agentEmailTestStack;
  if (!stack) return;
  holder.agentEmailTestStack = undefined;
  await Promise.all(stack.stops.map((stop) => stop()));
  rmSync(stack.directory, { recursive: true, force: true });
}

async function startDatabase({ directory, stops }: Running): Promise<TestStack['postgres']> {
  // Test files import this module for the addresses and must not load the server with it.
  const { findFreePort } = await import('../../dev/stack/ports.ts');
  const { startPostgres } = await import('../../dev/stack/postgres.ts');
  const { migrate } = await import('../../workers/migrate.ts');
  const server = await startPostgres({
    dataDir: join(directory, 'postgres'),
    port: await findFreePort(),
    password: randomBytes(12).toString('hex'),
    logFile: join(directory, 'postgres.log'),
    durable: false,
    log: () => undefined,
  });
  stops.push(() => server.stop());
  await server.ensureDatabase('agent_email');
  const login = (user: string) =>
    server.url('agent_email', { user, password: randomBytes(12).toString('hex') });
  const facts = {
    ownerUrl: server.url('agent_email'),
    apiUrl: login('api_login'),
    workerUrl: login('worker_login'),
    logFile: join(directory, 'postgres.log'),
  };
  await migrate({ migrationUrl: facts.ownerUrl, apiUrl: facts.apiUrl, workerUrl: facts.workerUrl });
  await copyDatabase(server.url('postgres'), 'agent_email', TEMPLATE);
  return facts;
}

/** A copy of the migrated database that stays empty, to which no session connects: the origin of further copies. */
const TEMPLATE = 'agent_email_template';

async function copyDatabase(url: string, from: string, to: string): Promise<void> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`create database ${to} template ${from}`);
  } finally {
    await client.end();
  }
}

/** Creates a migrated, empty database. @param name must be unique in the test run. */
export const createEmptyDatabase = (name: string): Promise<void> =>
  copyDatabase(testStack().postgres.ownerUrl, TEMPLATE, name);

/** The servers of this test run. */
export function testStack(): TestStack {
  const facts = process.env[VARIABLE];
  if (!facts) throw new Error('This tier has no stack: name the file *.api.test.ts');
  return JSON.parse(facts) as TestStack;
}
