import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { sql } from '@mikro-orm/core';
import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import { readVersion } from '../../platform/telemetry.ts';
import { HEARTBEAT_INTERVAL_MS } from './process.entity.ts';

export interface AnnouncedProcess {
  stop(): Promise<void>;
}

/**
 * Shows this process to operators, with its version, until it stops: `GET /admin/health`. Failures are logged, and change
 * nothing else.
 */
export function announceProcess(
  database: Pick<Database, 'query'>,
  { name, logger, intervalMs = HEARTBEAT_INTERVAL_MS }: { name: string; logger: Logger; intervalMs?: number },
): AnnouncedProcess {
  const id = randomUUID();
  const startedAt = new Date();
  const run = (work: Promise<unknown>): Promise<void> =>
    work.then(
      () => undefined,
      (error: unknown) => logger.warn({ err: error }, 'could not announce the process'),
    );
  const beat = () =>
    run(
      database.query(sql`
        insert into processes (id, name, version, host, started_at, last_seen_at)
        values (${id}, ${name}, ${readVersion()}, ${hostname()}, ${startedAt}, now())
        on conflict (id) do update set last_seen_at = excluded.last_seen_at`),
    );
  let last = beat();
  const timer = setInterval(() => {
    last = beat();
  }, intervalMs);
  timer.unref();
  return {
    async stop() {
      clearInterval(timer);
      await last;
      await run(database.query(sql`delete from processes where id = ${id}`));
    },
  };
}

/** Sweep: deletes the rows of processes that ended without saying so, an hour later. Returns their number. */
export async function purgeProcesses(database: Pick<Database, 'query'>): Promise<number> {
  const purged = await database.query(
    sql`delete from processes where last_seen_at < now() - interval '1 hour' returning id`,
  );
  return purged.length;
}
