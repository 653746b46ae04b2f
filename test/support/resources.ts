import pg from 'pg';
import { loadConfig } from '../../platform/config.ts';
import type { Database } from '../../platform/database/database.ts';
import { createStorage, type Storage } from '../../platform/storage.ts';
import { createIsolatedDatabase } from './isolated-database.ts';
import { startObjectStorage } from './object-storage.ts';
import { testStack } from './stack.ts';
import { connect, startTestApp, type TestApp, type TestAppOptions, testEnvironment } from './test-app.ts';
import { useResource } from './use-resource.ts';

/** @param options a function if they depend on another resource. */
export function useTestApp(options: TestAppOptions | (() => TestAppOptions) = {}): TestApp {
  return useResource(
    () => startTestApp(typeof options === 'function' ? options() : options),
    (app) => app.close(),
  );
}

/** The database of the run as a worker sees it: every tenant. */
export const useWorkerDatabase = (): Database => useDatabase('workerUrl');

/** The database of the run as the API sees it: under row-level security. */
export const useApiDatabase = (): Database => useDatabase('apiUrl');

function useDatabase(login: 'workerUrl' | 'apiUrl'): Database {
  return useResource(
    () => connect(testStack().postgres[login]),
    (database) => database.close(),
  );
}

/** Plain SQL on the database of the run. The owner of the schema bypasses all policies. */
export function usePostgres(login: 'ownerUrl' | 'apiUrl'): pg.Client {
  return useResource(
    async () => {
      const client = new pg.Client({ connectionString: testStack().postgres[login] });
      await client.connect();
      return client;
    },
    (client) => client.end(),
  );
}

/** A new database of the file's own, as a worker sees it. */
export function useIsolatedDatabase(name: string): Database {
  return useResource(
    () => createIsolatedDatabase(name),
    (database) => database.close(),
  );
}

export type ObjectStorage = Awaited<ReturnType<typeof startObjectStorage>>;

/** An S3 server of the file's own. */
export function useObjectStorage(): ObjectStorage {
  return useResource(startObjectStorage, (server) => server.stop());
}

/** A client of {@link useObjectStorage}'s server, for files without {@link useTestApp}. */
export function useStorage(server: ObjectStorage): Storage {
  return useResource(
    async () =>
      createStorage(loadConfig(testEnvironment(testStack().postgres.workerUrl, server.environment))),
    async (storage) => storage.close(),
  );
}
