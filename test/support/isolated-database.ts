import pg from 'pg';
import type { Database } from '../../platform/database/database.ts';
import { migrate } from '../../workers/migrate.ts';
import { testStack } from './stack.ts';
import { connect } from './test-app.ts';

/**
 * A database of a test file's own, as a worker: for tests of sweeps, which take rows of everybody, and would delete the
 * objects of other tests in a storage where they are not.
 *
 * @param name new in the run.
 */
export async function createIsolatedDatabase(name: string): Promise<Database> {
  const { ownerUrl, workerUrl } = testStack().postgres;
  const owner = new pg.Client({ connectionString: ownerUrl });
  await owner.connect();
  await owner.query(`create database ${name}`);
  await owner.end();
  const within = (url: string) => Object.assign(new URL(url), { pathname: `/${name}` }).toString();
  // The logins belong to the cluster, and are there.
  await migrate({ migrationUrl: within(ownerUrl) });
  return connect(within(workerUrl));
}
