import { sql } from 'kysely';
import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import type { Database } from './database/database.ts';

export const DEPENDENCIES = ['database', 'temporal', 'storage'] as const;
export type DependencyName = (typeof DEPENDENCIES)[number];
export type DependencyState = 'ok' | 'unavailable';

/** Rejects if the dependency is unavailable. */
export type Probe = () => Promise<void>;

export interface Dependencies {
  /** The state of each. Calls within two seconds share one look, since anyone may ask. Never throws. */
  read(): Promise<Record<DependencyName, DependencyState>>;
  /** How long the last look at it took; 0 before the first. */
  latencyMs(name: DependencyName): number;
}

const CACHE_MS = 2_000;
/** Less than the timeout of a container's health check. */
const PROBE_TIMEOUT_MS = 2_500;

/** Watches what a process needs, and logs when one becomes unavailable or available. */
export function createDependencies({
  probes,
  logger,
  now = Date.now,
}: {
  probes: Record<DependencyName, Probe>;
  logger: Logger;
  now?: () => number;
}): Dependencies {
  const last = new Map<DependencyName, DependencyState>();
  const latencies = new Map<DependencyName, number>();
  let known: { at: number; states: Promise<Record<DependencyName, DependencyState>> } | undefined;

  async function check(name: DependencyName): Promise<DependencyState> {
    const startedAt = performance.now();
    const failure = await withinTimeout(probes[name]).then(
      () => undefined,
      (error: unknown) => ({ err: error }),
    );
    latencies.set(name, Math.round(performance.now() - startedAt));
    const state = failure ? 'unavailable' : 'ok';
    if (failure && last.get(name) !== state)
      logger.warn({ dependency: name, ...failure }, 'dependency is unavailable');
    if (!failure && last.get(name) === 'unavailable')
      logger.info({ dependency: name }, 'dependency is available again');
    last.set(name, state);
    return state;
  }

  async function look(): Promise<Record<DependencyName, DependencyState>> {
    const states = await Promise.all(DEPENDENCIES.map(async (name) => [name, await check(name)] as const));
    return Object.fromEntries(states) as Record<DependencyName, DependencyState>;
  }

  return {
    read() {
      if (!known || now() - known.at >= CACHE_MS) known = { at: now(), states: look() };
      return known.states;
    },
    latencyMs: (name) => latencies.get(name) ?? 0,
  };
}

async function withinTimeout(probe: Probe): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error('No response in time')), PROBE_TIMEOUT_MS);
  await Promise.race([probe(), promise]).finally(() => clearTimeout(timer));
}

/**
 * Without a server that takes changes nothing can be accepted: a standby after a failover, or one that an operator made
 * read-only because its disk is full, answers queries all the same.
 *
 * @throws Error if PostgreSQL does not answer or only reads.
 */
export async function probeDatabase({ db }: Pick<Database, 'db'>): Promise<void> {
  const row = await db
    .selectNoFrom(sql<string>`current_setting('transaction_read_only')`.as('readOnly'))
    .executeTakeFirst();
  if (row?.readOnly !== 'off')
    throw new Error('PostgreSQL only reads: it is a standby, or default_transaction_read_only is on');
}

/** Adds a gauge that is 1 while the dependency is available to this process, and 0 otherwise. */
export function addDependencyMetrics(registry: Registry, dependencies: Dependencies): void {
  new Gauge({
    name: 'agent_email_dependency_up',
    help: '1 while the dependency is available to this process, otherwise 0.',
    labelNames: ['dependency'],
    registers: [registry],
    async collect() {
      for (const [dependency, state] of Object.entries(await dependencies.read()))
        this.set({ dependency }, state === 'ok' ? 1 : 0);
    },
  });
}
