import type { Client } from '@temporalio/client';
import pg from 'pg';
import { apiClient, type Call } from './client.ts';
import { type IsolatedService, startIsolatedService } from './isolated-service.ts';
import { useResource } from './use-resource.ts';

/** A whole service with its first organization and clients of its API, its database (as schema owner) and Temporal. */
export interface IsolatedOrganization {
  service: IsolatedService;
  organizationId: string;
  call: Call;
  database: pg.Client;
  temporal: Client;
  stop(): Promise<void>;
}

/** For tests that kill processes while workflows run. */
export const useIsolatedOrganization = (): IsolatedOrganization =>
  useResource(startIsolatedOrganization, (own) => own.stop());

async function startIsolatedOrganization(): Promise<IsolatedOrganization> {
  const service = await startIsolatedService({});
  const call = apiClient({ base_url: service.baseUrl }, service.apiKey);
  const database = new pg.Client({ connectionString: service.ownerDatabaseUrl });
  await database.connect();
  const temporal = await service.connectToTemporal();
  return {
    service,
    organizationId: String((await call('GET', '/org')).body.id),
    call,
    database,
    temporal,
    async stop() {
      await temporal.connection.close();
      await database.end();
      await service.stop();
    },
  };
}
