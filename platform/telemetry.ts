import { timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { sha256 } from './crypto.ts';
import type { Database } from './database/database.ts';

/** Creates the Prometheus metrics that every process has. @param process the name of its command. */
export function createMetricsRegistry(process: string): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'agent_email_build_info',
    help: 'Always 1; the labels name the version and the process.',
    labelNames: ['version', 'process'],
    registers: [registry],
  }).set({ version: readVersion(), process }, 1);
  return registry;
}

/** Adds the number of the process's PostgreSQL connections, and of callers waiting for one. */
export function addConnectionMetrics(registry: Registry, database: Pick<Database, 'poolUsage'>): void {
  new Gauge({
    name: 'agent_email_database_connections',
    help: 'Connections to PostgreSQL in use and idle, and callers waiting for one.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const [state, count] of Object.entries(database.poolUsage())) this.set({ state }, count);
    },
  });
}

/** Whether an `Authorization` header contains the token. Compares in constant time. */
export function isMetricsToken(token: string, authorization: string | undefined): boolean {
  return timingSafeEqual(sha256(authorization ?? ''), sha256(`Bearer ${token}`));
}

/** The version of the service, from package.json. */
export function readVersion(): string {
  const file = new URL('../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
