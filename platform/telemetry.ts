import { timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { sha256 } from './crypto.ts';
import type { Database } from './database/database.ts';

/** What a process tells Prometheus of itself, whatever it is. @param process named as its command is. */
export function createMeters(process: string): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'agent_email_build_info',
    help: 'Always 1; which version of which process runs.',
    labelNames: ['version', 'process'],
    registers: [registry],
  }).set({ version: readVersion(), process }, 1);
  return registry;
}

/** How many connections a process holds to PostgreSQL, and how many callers wait for one. */
export function meterConnections(registry: Registry, database: Pick<Database, 'poolUsage'>): void {
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

/** Whether a header `Authorization` has the token; compared in constant time. */
export function isMetricsToken(token: string, authorization: string | undefined): boolean {
  return timingSafeEqual(sha256(authorization ?? ''), sha256(`Bearer ${token}`));
}

function readVersion(): string {
  const file = new URL('../package.json', import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
