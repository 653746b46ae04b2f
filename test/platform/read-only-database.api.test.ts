import { expect, test } from '@jest/globals';
import type { Database } from '../../platform/database/database.ts';
import { probeDatabase } from '../../platform/dependencies.ts';
import { newId } from '../../platform/ids.ts';
import { useApiDatabase, useWorkerDatabase } from '../support/resources.ts';

const databases = { api: useApiDatabase(), worker: useWorkerDatabase() };

/** Answers as a standby does, where every transaction only reads. */
const standbyOf = (database: Database): Pick<Database, 'query'> => ({
  query: <Row>(statement: Parameters<Database['query']>[0]) =>
    database.read({ organizationId: newId('organization') }, (reader) =>
      reader.execute<(Row & object)[]>(statement),
    ),
});

test.each(['api', 'worker'] as const)(
  'a database that only reads is not available to the %s',
  async (login) => {
    await expect(probeDatabase(databases[login])).resolves.toBeUndefined();
    await expect(probeDatabase(standbyOf(databases[login]))).rejects.toThrow('PostgreSQL only reads');
  },
);
