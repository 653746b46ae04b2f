import {
  Client,
  Connection,
  type ConnectionOptions,
  defaultGrpcRetryOptions,
  makeGrpcRetryInterceptor,
} from '@temporalio/client';
import {
  defineSearchAttributeKey,
  type SearchAttributePair,
  SearchAttributeType,
  TypedSearchAttributes,
} from '@temporalio/common';
import type { Config } from './config.ts';

/**
 * Search attributes of runs: tenant, resource, stage, and the API request that started the run. All are of type Keyword, of
 * which a namespace on PostgreSQL can have ten. A new one must exist in the namespace before this code starts.
 */
export const SEARCH_ATTRIBUTES = [
  'OrgId',
  'EnvId',
  'InboxId',
  'ResourceId',
  'RelatedId',
  'Stage',
  'RequestId',
] as const;
export type SearchAttributeName = (typeof SEARCH_ATTRIBUTES)[number];

const searchAttributeKeys = Object.fromEntries(
  SEARCH_ATTRIBUTES.map((name) => [name, defineSearchAttributeKey(name, SearchAttributeType.KEYWORD)]),
) as Record<SearchAttributeName, ReturnType<typeof defineSearchAttributeKey<'KEYWORD'>>>;

/** The search attributes of a run, as the client takes them. */
export const toSearchAttributes = (
  values: Partial<Record<SearchAttributeName, string>>,
): TypedSearchAttributes =>
  new TypedSearchAttributes(
    Object.entries(values).map(
      ([name, value]) =>
        ({ key: searchAttributeKeys[name as SearchAttributeName], value }) as SearchAttributePair,
    ),
  );

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

type Interceptor = NonNullable<ConnectionOptions['interceptors']>[number];
type Call = ReturnType<Interceptor>;

/** gRPC: CANCELLED. Such a call is not tried again. */
const CANCELED = 1;

/**
 * Fails a call whose channel is closed. gRPC throws instead; if that is a retry, it throws in a timer, which ends the process,
 * and the call never settles.
 */
const failOnClosedChannel: Interceptor = (options, nextCall) => {
  try {
    return nextCall(options) as Call;
  } catch (error) {
    return createFailedCall(error) as unknown as Call;
  }
};

function createFailedCall(error: unknown): ReturnType<Parameters<Interceptor>[1]> {
  const details = error instanceof Error ? error.message : String(error);
  return {
    start(metadata, listener) {
      listener?.onReceiveMessage?.(null);
      listener?.onReceiveStatus?.({ code: CANCELED, details, metadata: metadata.clone() });
    },
    sendMessage: () => undefined,
    sendMessageWithContext: () => undefined,
    startRead: () => undefined,
    halfClose: () => undefined,
    cancelWithStatus: () => undefined,
    getPeer: () => '',
    getAuthContext: () => null,
  };
}

/** Innermost last: each attempt of a retried call passes it. For connections of clients that close during calls. */
export const CLIENT_INTERCEPTORS: Interceptor[] = [
  makeGrpcRetryInterceptor(defaultGrpcRetryOptions()),
  failOnClosedChannel,
];

/** Connects on first use, so a process can start while Temporal is down. */
export function createTemporalClient(config: TemporalConfig): Client {
  return new Client({
    connection: Connection.lazy({ ...temporalConnectionOptions(config), interceptors: CLIENT_INTERCEPTORS }),
    namespace: config.TEMPORAL_NAMESPACE,
  });
}

const PING_TIMEOUT_MS = 2_000;

/** @throws Error if the Temporal frontend does not respond in time. */
export async function pingTemporal({ connection }: Pick<Client, 'connection'>): Promise<void> {
  await connection.withDeadline(Date.now() + PING_TIMEOUT_MS, async () => {
    await connection.workflowService.getSystemInfo({});
  });
}
