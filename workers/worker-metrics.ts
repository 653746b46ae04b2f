import type { Logger } from 'pino';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { ParserPool } from '../domain/mime/parser/pool.ts';
import { type Backlog, readBacklog } from '../domain/monitoring/backlog.ts';
import { readSweeps } from '../domain/monitoring/sweeps.ts';
import type { Database } from '../platform/database/database.ts';
import type { QueueAges } from '../platform/outbox/queue-ages.ts';
import type { ScheduleWatch } from './schedules.ts';

/** Scrapes within this time share one query. */
const BACKLOG_CACHE_MS = 10_000;

/** Adds gauges for the pending work in the database, across all organizations. */
export function installBacklogMetrics(
  registry: Registry,
  {
    database,
    logger,
    now = Date.now,
  }: { database: Pick<Database, 'db'>; logger: Logger; now?: () => number },
): void {
  const failures = new Counter({
    name: 'agent_email_backlog_failures_total',
    help: 'Failed reads of the backlog; its gauges are then absent.',
    registers: [registry],
  });
  let known: { at: number; backlog: Promise<Backlog[]> } | undefined;
  // An error must not hide the other metrics of the process.
  const read = async () => {
    if (!known || now() - known.at >= BACKLOG_CACHE_MS) {
      const backlog = readBacklog(database).catch((error: unknown) => {
        failures.inc();
        logger.warn({ err: error }, 'could not read the backlog');
        return [];
      });
      known = { at: now(), backlog };
    }
    return known.backlog;
  };
  new Gauge({
    name: 'agent_email_backlog',
    help: 'Pending rows, by kind; at most 10,000 are counted.',
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
    help: 'Age of the oldest pending row, by kind; 0 if there is none.',
    labelNames: ['kind'],
    registers: [registry],
    async collect() {
      const backlog = await read();
      this.reset();
      for (const { kind, oldestSeconds } of backlog) this.set({ kind }, Math.max(0, oldestSeconds ?? 0));
    },
  });
}

/** Adds a gauge for when recurring work last succeeded, whichever process did it. */
export function installSweepMetrics(
  registry: Registry,
  { database, logger }: { database: Pick<Database, 'db'>; logger: Logger },
): void {
  new Gauge({
    name: 'agent_email_last_sweep_timestamp_seconds',
    help: 'When recurring work last succeeded, in Unix seconds; absent if unknown.',
    labelNames: ['sweep'],
    registers: [registry],
    async collect() {
      const sweeps = await readSweeps(database).catch((error: unknown) => {
        logger.warn({ err: error }, 'could not read the last sweep');
        return [];
      });
      this.reset();
      for (const { name, finishedAt } of sweeps) this.set({ sweep: name }, finishedAt.getTime() / 1_000);
    },
  });
}

/** Adds a gauge for the age of the oldest waiting start of each task queue. */
export function installQueueAgeMetrics(registry: Registry, queueAges: QueueAges): void {
  new Gauge({
    name: 'agent_email_queue_oldest_seconds',
    help: 'Age of the oldest waiting start, by task queue and by where it waits; absent if unknown.',
    labelNames: ['task_queue', 'waits_in'],
    registers: [registry],
    async collect() {
      const ages = Object.entries(await queueAges.read());
      this.reset();
      for (const [task_queue, { outboxSeconds, temporalSeconds }] of ages) {
        if (outboxSeconds !== null) this.set({ task_queue, waits_in: 'outbox' }, outboxSeconds);
        if (temporalSeconds !== null) this.set({ task_queue, waits_in: 'temporal' }, temporalSeconds);
      }
    },
  });
}

/** Adds a gauge for the schedules. One that is missing and cannot be created is unknown, as while Temporal is away. */
export function installScheduleMetrics(registry: Registry, watch: Pick<ScheduleWatch, 'states'>): void {
  new Gauge({
    name: 'agent_email_schedule_active',
    help: '1 if the schedule runs, 0 if it is paused; absent if unknown.',
    labelNames: ['schedule'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [schedule, state] of watch.states) this.set({ schedule }, state === 'active' ? 1 : 0);
    },
  });
}

/** Adds a gauge for the parser processes. */
export function installParserMetrics(registry: Registry, reader: Pick<ParserPool, 'usage'>): void {
  new Gauge({
    name: 'agent_email_mail_parsers',
    help: 'Busy and idle parser processes, and messages waiting for one.',
    labelNames: ['state'],
    registers: [registry],
    collect() {
      for (const [state, count] of Object.entries(reader.usage())) this.set({ state }, count);
    },
  });
}
