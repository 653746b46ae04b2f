import { expect, test } from '@jest/globals';
import { probeDatabase } from '../../platform/dependencies.ts';
import { newId } from '../../platform/ids.ts';
import { useApiDatabase, useWorkerDatabase } from '../support/resources.ts';

const databases = { api: useApiDatabase(), worker: useWorkerDatabase() };

test.each(['api', 'worker'] as const)(
  'a database that only reads is not available to the %s',
  async (login) => {
    const database = databases[login];
    await expect(probeDatabase(database)).resolves.toBeUndefined();
    // As on a standby, where every transaction only reads.
    const probing = database.read({ organizationId: newId('organization') }, (reader) =>
      probeDatabase(reader),
    );
    await expect(probing).rejects.toThrow('PostgreSQL only reads');
  },
);
