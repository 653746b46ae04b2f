import type { Database } from '../../platform/database/database.ts';
import { createEmptyDatabase, testStack } from './stack.ts';
import { connect } from './test-app.ts';

/**
 * Creates a separate database and connects as a worker. For tests of sweeps, which process rows of all organizations
 * and would delete rows of other tests whose objects are in another storage.
 *
 * @param name must be unique in the test run.
 */
export async function createIsolatedDatabase(name: string): Promise<Database> {
  return connect((await createDatabaseUrls(name)).workerUrl);
}

/** Creates a separate database, for tests that change what holds for the whole service. @param name as above. */
export async function createDatabaseUrls(
  name: string,
): Promise<{ ownerUrl: string; apiUrl: string; workerUrl: string }> {
  const { ownerUrl, apiUrl, workerUrl } = testStack().postgres;
  await createEmptyDatabase(name);
  // Logins belong to the cluster and exist already.
  const within = (url: string) => Object.assign(new URL(url), { pathname: `/${name}` }).toString();
  return { ownerUrl: within(ownerUrl), apiUrl: within(apiUrl), workerUrl: within(workerUrl) };
}
