import { Client, Connection, type ConnectionOptions } from '@temporalio/client';
import { defineSearchAttributeKey, SearchAttributeType } from '@temporalio/common';
import type { Config } from './config.ts';

/** Every run carries these, so an operator finds it by tenant, by thing and by where it stands. All are Keyword. */
export const SEARCH_ATTRIBUTES = ['OrgId', 'EnvId', 'InboxId', 'ResourceId', 'RelatedId', 'Stage'] as const;
export type SearchAttributeName = (typeof SEARCH_ATTRIBUTES)[number];

export const searchAttributeKeys = Object.fromEntries(
  SEARCH_ATTRIBUTES.map((name) => [name, defineSearchAttributeKey(name, SearchAttributeType.KEYWORD)]),
) as Record<SearchAttributeName, ReturnType<typeof defineSearchAttributeKey<'KEYWORD'>>>;

type TemporalConfig = Pick<
  Config,
  'TEMPORAL_ADDRESS' | 'TEMPORAL_NAMESPACE' | 'TEMPORAL_TLS' | 'TEMPORAL_API_KEY'
>;

export function temporalConnectionOptions(
  config: TemporalConfig,
): Pick<ConnectionOptions, 'address' | 'tls'> & { apiKey?: string } {
  return {
    address: config.TEMPORAL_ADDRESS,
    tls: config.TEMPORAL_TLS,
    ...(config.TEMPORAL_API_KEY ? { apiKey: config.TEMPORAL_API_KEY } : {}),
  };
}

/** A client that connects when first used, so that a process starts while Temporal is down. */
export function createTemporalClient(config: TemporalConfig): Client {
  return new Client({
    connection: Connection.lazy(temporalConnectionOptions(config)),
    namespace: config.TEMPORAL_NAMESPACE,
  });
}

const PING_TIMEOUT_MS = 2_000;

/** @throws when the Temporal frontend does not answer in time. */
export async function pingTemporal({ connection }: Pick<Client, 'connection'>): Promise<void> {
  await connection.withDeadline(Date.now() + PING_TIMEOUT_MS, async () => {
    await connection.workflowService.getSystemInfo({});
  });
}
