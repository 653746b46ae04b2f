import { sql } from '@mikro-orm/core';
import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import type { SerializedRow } from '../../platform/database/serialized-row.ts';
import type { ScheduleReader, ScheduleSummary } from '../../platform/temporal-runs/schedule-reader.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { SILENT_AFTER_MS } from './process.entity.ts';

export interface RunningProcess {
  name: string;
  version: string;
  host: string;
  startedAt: Date;
  lastSeenAt: Date;
}

export interface OutboxHealth {
  /** Commands that wait for Temporal, at most {@link MAX_COUNTED}. */
  waiting: number;
  /** Age of the oldest one; 0 if none waits. */
  oldestSeconds: number;
  /** Commands that are no longer tried. */
  givenUp: number;
  /** Why the oldest command that failed was not accepted; null if none failed. */
  lastError: string | null;
}

/** What only the database and Temporal know about the service; null if they do not respond. */
export interface ServiceHealth {
  outbox: OutboxHealth | null;
  /** When recurring work last succeeded, by its name. */
  sweeps: { name: string; finishedAt: Date }[] | null;
  processes: RunningProcess[] | null;
  schedules: ScheduleSummary[] | null;
}

export interface HealthService {
  /** Never throws: it is read when something is broken. */
  read(staff: StaffScope): Promise<ServiceHealth>;
}

export const MAX_COUNTED = 10_000;
/** More processes than any installation of this size has. */
export const MAX_PROCESSES = 500;

export function createHealthService({
  database,
  schedules,
  logger,
}: {
  database: Database;
  schedules: ScheduleReader;
  logger: Logger;
}): HealthService {
  const orNull = <T>(work: Promise<T>): Promise<T | null> =>
    work.catch((error: unknown) => {
      logger.warn({ err: error }, 'could not read a part of the health of the service');
      return null;
    });
  return {
    async read(staff) {
      const [rows, listed] = await Promise.all([orNull(readRows(database, staff)), orNull(schedules.list())]);
      return {
        outbox: rows?.outbox ?? null,
        sweeps: rows?.sweeps ?? null,
        processes: rows?.processes ?? null,
        schedules: listed,
      };
    },
  };
}

function readRows(database: Database, staff: StaffScope) {
  return database.staffTransaction(staff, async ({ em }) => {
    const [outbox] = await em.execute<OutboxHealth[]>(sql`
      select count(*) filter (where dead_at is null)::int as waiting,
        coalesce(extract(epoch from now() - min(created_at) filter (where dead_at is null)), 0)::float8 as "oldestSeconds",
        count(*) filter (where dead_at is not null)::int as "givenUp",
        (array_agg(last_error order by id) filter (where last_error is not null))[1] as "lastError"
      from (select id, created_at, dead_at, last_error from outbox order by id limit ${MAX_COUNTED}) oldest`);
    const sweeps = await em.execute<{ name: string; finishedAt: string }[]>(
      sql`select name, finished_at as "finishedAt" from sweeps order by name limit 100`,
    );
    const processes = await em.execute<SerializedRow<RunningProcess>[]>(sql`
      select name, version, host, started_at as "startedAt", last_seen_at as "lastSeenAt" from processes
      where last_seen_at > now() - ${SILENT_AFTER_MS} * interval '1 millisecond'
      order by name, host, started_at limit ${MAX_PROCESSES}`);
    return {
      outbox: outbox ?? null,
      sweeps: sweeps.map(({ name, finishedAt }) => ({ name, finishedAt: new Date(finishedAt) })),
      processes: processes.map((process) => ({
        ...process,
        startedAt: new Date(process.startedAt),
        lastSeenAt: new Date(process.lastSeenAt),
      })),
    };
  });
}
