import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { findFreePort } from '../dev/stack/ports.ts';
import { startPostgres } from '../dev/stack/postgres.ts';
import { migrate } from '../workers/migrate.ts';

/** A temporary PostgreSQL with the schema and no rows. */
export interface BenchDatabase {
  /** Connects as the owner of the schema. */
  owner: pg.Client;
  apiUrl: string;
  workerUrl: string;
}

/** Runs `work` on an empty database and deletes it. */
export async function withBenchDatabase(work: (database: BenchDatabase) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-email-bench-'));
  chmodSync(folder, 0o755);
  const postgres = await startPostgres({
    dataDir: join(folder, 'postgres'),
    port: await findFreePort(),
    password: 'bench',
    logFile: join(folder, 'postgres.log'),
    durable: false,
    log: () => undefined,
  });
  try {
    await postgres.ensureDatabase('agent_email');
    const url = (user: string) => postgres.url('agent_email', { user, password: 'bench' });
    const [apiUrl, workerUrl] = [url('api_login'), url('worker_login')];
    await migrate({ migrationUrl: postgres.url('agent_email'), apiUrl, workerUrl });
    const owner = new pg.Client({ connectionString: postgres.url('agent_email') });
    await owner.connect();
    try {
      await work({ owner, apiUrl, workerUrl });
    } finally {
      await owner.end();
    }
  } finally {
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
