import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { CLIENT_INTERCEPTORS, SEARCH_ATTRIBUTES } from '../../platform/temporal.ts';
import { type Child, startChild } from './child-process.ts';
import { type HostGuard, startHostGuard } from './host-guard.ts';
import { acceptsConnections, findFreePort, pickLoopbackAddress } from './ports.ts';
import { waitUntil } from './wait.ts';

const NAMESPACE = 'default';
/** How long closed runs stay readable and their workflow ids reject duplicates. */
const RETENTION = '30 days';

export interface TemporalOptions {
  /** Path of the Temporal CLI, from `findTemporalCli`. */
  executable: string;
  port: number;
  /** Undefined starts without the UI. */
  uiPort?: number;
  /** SQLite file; undefined keeps everything in memory. */
  databaseFile?: string;
  logFile: string;
  /** Further settings of the server, for example lower limits in tests. */
  dynamicConfig?: Record<string, number>;
  pidFile?: string;
  /** Aborts the start. */
  signal?: AbortSignal;
}

export interface TemporalServer {
  readonly address: string;
  readonly namespace: string;
  readonly uiUrl: string | undefined;
  readonly pid: number;
  readonly exited: Promise<string>;
  stop(): Promise<void>;
  /** Sends SIGKILL, for crash tests. */
  kill(): Promise<void>;
}

const MAX_STARTS = 3;

/**
 * Starts the Temporal dev server on 127.0.0.1 with the search attributes of `platform/temporal.ts`. The server picks
 * ports for its internal services and occasionally loses one to another process before it listens; it is then
 * started again.
 */
export async function startTemporal(options: TemporalOptions): Promise<TemporalServer> {
  if (options.databaseFile) mkdirSync(dirname(options.databaseFile), { recursive: true });
  for (let start = 1; ; start += 1) {
    try {
      return await startOnce(options);
    } catch (error) {
      const lostPort = error instanceof Error && error.message.includes('address already in use');
      if (!lostPort || start === MAX_STARTS || !(await portsAreFree(options))) throw error;
    }
  }
}

/** Whether the lost port is an internal one and not a requested one. */
async function portsAreFree({ port, uiPort }: TemporalOptions): Promise<boolean> {
  return !(await acceptsConnections(port)) && (uiPort === undefined || !(await acceptsConnections(uiPort)));
}

async function startOnce(options: TemporalOptions): Promise<TemporalServer> {
  const address = `127.0.0.1:${options.port}`;
  // Browsers reach the UI, which has no authentication, through a guard against other websites.
  const ui =
    options.uiPort === undefined ? undefined : { host: pickLoopbackAddress(), port: await findFreePort() };
  const child = await startChild({
    name: 'Temporal',
    command: options.executable,
    args: serverArguments(options, { ui, httpPort: await findFreePort() }),
    logFile: options.logFile,
    pidFile: options.pidFile,
    // The CLI reads TEMPORAL_* variables and profiles too, so the clients' settings are not passed on.
    env: { PATH: '/usr/bin:/bin', HOME: dirname(options.logFile) },
  });
  let guard: HostGuard | undefined;
  try {
    await waitUntil(() => prepareNamespace(address), {
      what: 'Temporal',
      timeoutMs: 60_000,
      failed: child.failure,
      signal: options.signal,
    });
    if (ui && options.uiPort !== undefined)
      guard = await startHostGuard({ port: options.uiPort, upstream: ui });
  } catch (error) {
    await child.stop();
    throw error;
  }
  return describeServer(options, address, { child, guard });
}

function describeServer(
  { uiPort }: TemporalOptions,
  address: string,
  { child, guard }: { child: Child; guard: HostGuard | undefined },
): TemporalServer {
  return {
    address,
    namespace: NAMESPACE,
    uiUrl: uiPort === undefined ? undefined : `http://127.0.0.1:${uiPort}`,
    pid: child.pid,
    exited: child.exited,
    async stop() {
      await child.stop();
      await guard?.stop();
    },
    async kill() {
      await child.kill();
      await guard?.stop();
    },
  };
}

function serverArguments(
  { port, databaseFile, dynamicConfig: further }: TemporalOptions,
  { ui, httpPort }: { ui: { host: string; port: number } | undefined; httpPort: number },
): string[] {
  const dynamicConfig = {
    // More partitions than cores only add hops on one machine; this halves the p99.
    'matching.numTaskqueueReadPartitions': 1,
    'matching.numTaskqueueWritePartitions': 1,
    // No organization's burst of mail, and no webhook endpoint that hangs, delays the others (fairness keys of their tasks).
    'matching.enableFairness': true,
    ...further,
  };
  return [
    'server',
    'start-dev',
    '--ip',
    '127.0.0.1',
    '--port',
    String(port),
    '--log-level',
    'warn',
    '--http-port',
    String(httpPort),
    ...(ui ? ['--ui-ip', ui.host, '--ui-port', String(ui.port), '--ui-disable-news-fetch'] : ['--headless']),
    // Without the pragmas every state change waits for the disk: 9 instead of 32 workflows a second.
    ...(databaseFile
      ? [
          '--db-filename',
          databaseFile,
          '--sqlite-pragma',
          'journal_mode=wal',
          '--sqlite-pragma',
          'synchronous=normal',
        ]
      : []),
    ...Object.entries(dynamicConfig).flatMap(([key, value]) => ['--dynamic-config-value', `${key}=${value}`]),
    ...SEARCH_ATTRIBUTES.flatMap((name) => ['--search-attribute', `${name}=Keyword`]),
  ];
}

/** temporal.api.enums.v1.IndexedValueType */
const KEYWORD = 2;

/** The server's option adds them only to a new database file. */
export async function addMissingSearchAttributes(
  { operatorService }: Pick<Connection, 'operatorService'>,
  namespace = NAMESPACE,
): Promise<void> {
  const { customAttributes } = await operatorService.listSearchAttributes({ namespace });
  const missing = SEARCH_ATTRIBUTES.filter((name) => !(name in (customAttributes ?? {})));
  if (missing.length === 0) return;
  await operatorService.addSearchAttributes({
    namespace,
    searchAttributes: Object.fromEntries(missing.map((name) => [name, KEYWORD])),
  });
}

/** Resolves once the namespace is ready: the frontend listens before it can serve requests. */
async function prepareNamespace(address: string): Promise<void> {
  const connection = await Connection.connect({
    address,
    connectTimeout: 1000,
    interceptors: CLIENT_INTERCEPTORS,
  });
  try {
    const deadline = Date.now() + 2000;
    await connection.withDeadline(deadline, async () => {
      await connection.workflowService.updateNamespace({
        namespace: NAMESPACE,
        config: { workflowExecutionRetentionTtl: msToTs(RETENTION) },
      });
      await addMissingSearchAttributes(connection);
    });
  } finally {
    await connection.close();
  }
}
