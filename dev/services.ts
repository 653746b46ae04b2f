import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConfigSchema } from '../platform/config.ts';
import type { DataFolder, Secrets } from './data-folder.ts';
import type { Dependencies, StartedDependency } from './dependencies.ts';
import type { DevSettings } from './settings.ts';
import { type Child, type Log, startChild } from './stack/child-process.ts';
import { waitUntil } from './stack/wait.ts';

const ROOT = resolve(import.meta.dirname, '..');
const READY_TIMEOUT_MS = 60_000;
/** A stop may take 15 seconds; the rest is for the dependencies. */
const DRAIN_TIMEOUT_MS = 8_000;
const RESTART_DELAYS_MS = [500, 1000, 2000, 5000, 10_000];
/** After this run time, earlier crashes no longer delay a restart. */
const STABLE_AFTER_MS = 60_000;

export interface Service {
  /** Base name of the log and pid files. */
  name: string;
  title: string;
  script: string;
  environment: NodeJS.ProcessEnv;
  healthUrl: string;
}

/** The settings (`platform/config.ts`) of the service's processes with these dependencies. */
export function serviceEnvironments(
  settings: DevSettings,
  secrets: Secrets & { dkimKeyFile: string },
  parts: Dependencies,
): { api: Record<string, string>; worker: Record<string, string> } {
  const { ports } = settings;
  const shared = {
    ...chosenSettings(settings.environment),
    NODE_ENV: 'dev',
    TEMPORAL_ADDRESS: parts.temporal.address,
    ...(parts.temporal.uiUrl === undefined ? {} : { TEMPORAL_UI_URL: parts.temporal.uiUrl }),
    ...parts.s3,
    ...parts.stripe,
    S3_FORCE_PATH_STYLE: 'true',
    API_HOST: '127.0.0.1',
    API_PORT: String(ports.api),
    // A host name, because passkeys do not work with an address.
    PUBLIC_URL: `http://localhost:${ports.api}`,
    ENCRYPTION_KEY: secrets.encryptionKey,
    SIGNING_KEY: secrets.signingKey,
    METRICS_TOKEN: settings.environment.METRICS_TOKEN || secrets.metricsToken,
    MAIL_DOMAIN: settings.mailDomain,
    BOUNCE_DOMAIN: settings.bounceDomain,
    DKIM_SHARED_SELECTOR: settings.environment.DKIM_SHARED_SELECTOR || 'dev',
    DKIM_SHARED_PRIVATE_KEY_FILE: settings.environment.DKIM_SHARED_PRIVATE_KEY_FILE || secrets.dkimKeyFile,
    MAIL_TRANSPORT: 'smtp',
    SMTP_RELAY_HOST: '127.0.0.1',
    SMTP_RELAY_PORT: String(ports.relay),
    SMTP_RELAY_TLS: 'none',
    INBOUND_SMTP_HOST: '127.0.0.1',
    INBOUND_SMTP_PORT: String(ports.inboundSmtp),
    SUBMISSION_SMTP_HOST: '127.0.0.1',
    SUBMISSION_SMTP_PORT: String(ports.submissionSmtp),
    // Shown to users of email clients. The self-signed certificate is for localhost.
    SUBMISSION_SMTP_HOSTNAME: 'localhost',
    WORKER_HEALTH_HOST: '127.0.0.1',
    WORKER_HEALTH_PORT: String(ports.workerHealth),
    // A developer's webhook receivers are on this machine.
    EGRESS_ALLOW: settings.environment.EGRESS_ALLOW || '127.0.0.0/8,::1/128',
    EGRESS_ALLOW_PORTS: settings.environment.EGRESS_ALLOW_PORTS || '*',
  };
  return {
    api: {
      ...shared,
      DATABASE_URL: parts.databaseUrls.api,
      // Needed if a provider is configured: `PROVIDER_RAW_SECRET=… npm start`.
      WORKER_DATABASE_URL: parts.databaseUrls.worker,
    },
    worker: { ...shared, DATABASE_URL: parts.databaseUrls.worker },
  };
}

/** What the developer has set, such as BILLING_ENABLED: also for processes that are started by hand (`--parts`). */
function chosenSettings(environment: NodeJS.ProcessEnv): Record<string, string> {
  return Object.fromEntries(
    Object.keys(ConfigSchema.properties).flatMap((name) => {
      const value = environment[name];
      return value ? [[name, value]] : [];
    }),
  );
}

const IMAGE_ENVIRONMENT = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '65536',
  MALLOC_TRIM_THRESHOLD_: '131072',
  NODE_OPTIONS: '--max-semi-space-size=2',
};
/** How much memory libc and V8 keep: as in Dockerfile and docker-compose.yml, which explain it (a test compares them). */
export const MEMORY_ENVIRONMENTS = {
  api: { ...IMAGE_ENVIRONMENT, NODE_OPTIONS: '--max-semi-space-size=16' },
  workers: IMAGE_ENVIRONMENT,
  maintenance: { ...IMAGE_ENVIRONMENT, NODE_OPTIONS: '--max-semi-space-size=2 --max-old-space-size=512' },
};

export function describeServices(
  settings: DevSettings,
  environments: ReturnType<typeof serviceEnvironments>,
): Service[] {
  const inherited = Object.fromEntries(
    Object.entries(settings.environment).filter(([name]) => !name.startsWith('npm_')),
  );
  return [
    {
      name: 'api',
      title: 'API',
      script: 'api/server.ts',
      environment: { ...MEMORY_ENVIRONMENTS.api, ...inherited, ...environments.api },
      healthUrl: `http://127.0.0.1:${settings.ports.api}/health/ready`,
    },
    {
      name: 'workers',
      title: 'Workers and inbound SMTP',
      script: 'workers/all.ts',
      environment: { ...MEMORY_ENVIRONMENTS.workers, ...inherited, ...environments.worker },
      healthUrl: `http://127.0.0.1:${settings.ports.workerHealth}/health/ready`,
    },
  ];
}

export interface Supervision {
  folder: DataFolder;
  log: Log;
  /** Aborts the start. */
  signal: AbortSignal;
}

/**
 * Starts one of the service's processes and waits until it is ready. Then restarts it whenever it exits, with growing
 * delays.
 *
 * @throws Error with the end of its log if it does not become ready the first time.
 */
export async function superviseService(
  service: Service,
  { folder, log, signal }: Supervision,
): Promise<StartedDependency> {
  const stopping = new AbortController();
  let child = await start(service, folder);
  try {
    await waitUntil(() => assertReady(service.healthUrl), {
      what: service.title,
      timeoutMs: READY_TIMEOUT_MS,
      failed: () => child.failure(),
      signal,
    });
  } catch (error) {
    await child.stop();
    throw error;
  }
  log(`${service.title} ready`);
  const supervision = keepRunning();

  async function keepRunning(): Promise<void> {
    let crashes = 0;
    while (!stopping.signal.aborted) {
      const startedAt = Date.now();
      const reason = await child.exited;
      if (stopping.signal.aborted) return;
      crashes = Date.now() - startedAt > STABLE_AFTER_MS ? 1 : crashes + 1;
      const delayMs = RESTART_DELAYS_MS[Math.min(crashes, RESTART_DELAYS_MS.length) - 1] ?? 0;
      log(
        `${service.title} ${reason}; starting again in ${delayMs / 1000} s. See ${folder.logFile(service.name)}`,
      );
      await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (!stopping.signal.aborted) child = await start(service, folder);
    }
  }

  return {
    name: service.title,
    async stop() {
      stopping.abort();
      await child.stop();
      await supervision;
      // A start that was in progress when the stop was requested has its child by now.
      await child.stop();
    },
  };
}

function start(service: Service, folder: DataFolder): Promise<Child> {
  return startChild({
    name: service.title,
    command: process.execPath,
    args: [join(ROOT, service.script)],
    cwd: ROOT,
    env: service.environment,
    logFile: folder.logFile(service.name),
    pidFile: folder.pidFile(service.name),
    stopTimeoutMs: DRAIN_TIMEOUT_MS,
  });
}

async function assertReady(url: string): Promise<void> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(2000) });
  await answer.body?.cancel();
  if (!answer.ok) throw new Error(`${url} returned ${answer.status}`);
}
