import type { Logger } from 'pino';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { ParserPool } from '../domain/mime/parser/pool.ts';
import { type Backlog, readBacklog } from '../domain/monitoring/backlog.ts';
import type { Database } from '../platform/database/database.ts';

/** A number that several scrapers ask for is read once in so long. */
const BACKLOG_FRESH_MS = 10_000;

/** What waits in the database, for all organizations together. */
export function meterBacklog(
  registry: Registry,
  {
    database,
    logger,
    now = Date.now,
  }: { database: Pick<Database, 'query'>; logger: Logger; now?: () => number },
): void {
  const failures = new Counter({
    name: 'agent_email_backlog_failures_total',
    help: 'How often the backlog could not be read; its gauges are then absent.',
    registers: [registry],
  });
  let known: { at: number; backlog: Promise<Backlog[]> } | undefined;
  // The other numbers of the process are shown whatever the database does.
  const read = async () => {
    if (!known || now() - known.at >= BACKLOG_FRESH_MS) {
      const backlog = readBacklog(database).catch((error: unknown) => {
        failures.inc();
        logger.warn({ err: error }, 'the backlog could not be read');
        return [];
      });
      known = { at: now(), backlog };
    }
    return known.backlog;
  };
  new Gauge({
    name: 'agent_email_backlog',
    help: 'Rows that wait, by kind; at most 10,000 are counted.',
    labelNames: ['kind'],
    registers: [registry],
    async collect() {
      const backlog = await read();
      this.reset();
      for (const { kind, count } of backlog) this.set({ kind }, count);
    },
  });
  new Gauge({
    name: 'agent_email_backlog_oldest_seconds',
    help: 'Age of the oldest row of a kind that waits; 0 where none does.',
    labelNames: ['kind'],
    registers: [registry],
    async collect() {
      const backlog = await read();
      this.reset();
      for (const { kind, oldestSeconds } of backlog) this.set({ kind }, Math.max(0, oldestSeconds ?? 0));
    },
  });
}

/** Processes that read mail: how many are at work, how many rest, and how many mails wait for one. */
export function meterParsers(registry: Registry, reader: Pick<ParserPool, 'usage'>): void {
  new Gauge({
    name: 'agent_email_mail_parsers',
    help: 'Mails being read in a process of their own, idle processes, and mails waiting for one.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const [state, count] of Object.entries(reader.usage())) this.set({ state }, count);
    },
  });
}
