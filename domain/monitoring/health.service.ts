import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { ScheduleReader, ScheduleSummary } from '../../platform/temporal-runs/schedule-reader.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { SILENT_AFTER_MS } from './announce-process.ts';

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
  /** Age of the oldest waiting command; 0 if none waits. */
  oldestSeconds: number;
  /** Commands that are no longer attempted. */
  givenUp: number;
  /** The error of the oldest failed command; null if none failed. */
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

export type HealthService = ReturnType<typeof createHealthService>;

const MAX_COUNTED = 10_000;
/** More processes than any installation is expected to have. */
export const MAX_PROCESSES = 500;

export function createHealthService({
  database,
  schedules,
  logger,
}: {
  database: Database;
  schedules: ScheduleReader;
  logger: Logger;
}) {
  const orNull = <T>(work: Promise<T>): Promise<T | null> =>
    work.catch((error: unknown) => {
      logger.warn({ err: error }, 'could not read a part of the health of the service');
      return null;
    });
  return {
    /** Never throws, because it is read when something is broken. */
    async read(staff: StaffScope): Promise<ServiceHealth> {
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
  return database.staffTransaction(staff, async ({ db }) => ({
    outbox: await readOutboxHealth(db),
    sweeps: await db
      .selectFrom('sweeps')
      .select(['name', 'finished_at as finishedAt'])
      .orderBy('name')
      .limit(100)
      .execute(),
    processes: await db
      .selectFrom('processes')
      .select(['name', 'version', 'host', 'started_at as startedAt', 'last_seen_at as lastSeenAt'])
      .where('last_seen_at', '>', sql<Date>`now() - ${SILENT_AFTER_MS} * interval '1 millisecond'`)
      .orderBy('name')
      .orderBy('host')
      .orderBy('started_at')
      .limit(MAX_PROCESSES)
      .execute(),
  }));
}

async function readOutboxHealth(db: Db): Promise<OutboxHealth | null> {
  const health = await db
    .selectFrom((eb) =>
      eb
        .selectFrom('outbox')
        .select(['id', 'created_at', 'dead_at', 'last_error'])
        .orderBy('id')
        .limit(MAX_COUNTED)
        .as('oldest'),
    )
    .select((eb) => [
      eb.fn.countAll<number>().filterWhere('dead_at', 'is', null).as('waiting'),
      sql<number>`coalesce(extract(epoch from now() - min(created_at) filter (where dead_at is null)), 0)::float8`.as(
        'oldestSeconds',
      ),
      eb.fn.countAll<number>().filterWhere('dead_at', 'is not', null).as('givenUp'),
      sql<string | null>`(array_agg(last_error order by id) filter (where last_error is not null))[1]`.as(
        'lastError',
      ),
    ])
    .executeTakeFirst();
  return health ?? null;
}
