import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import { readVersion } from '../../platform/telemetry.ts';

const HEARTBEAT_INTERVAL_MS = 15_000;
/** A process without a heartbeat for this long has ended without a clean stop. */
export const SILENT_AFTER_MS = 60_000;

export interface AnnouncedProcess {
  stop(): Promise<void>;
}

/** Shows this process and its version to operators (`GET /admin/health`) until it stops. Failures are only logged. */
export function announceProcess(
  { db }: Pick<Database, 'db'>,
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
      db
        .insertInto('processes')
        .values({
          id,
          name,
          version: readVersion(),
          host: hostname(),
          started_at: startedAt,
          last_seen_at: sql`now()`,
        })
        .onConflict((conflict) =>
          conflict.column('id').doUpdateSet((eb) => ({ last_seen_at: eb.ref('excluded.last_seen_at') })),
        )
        .execute(),
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
      await run(db.deleteFrom('processes').where('id', '=', id).execute());
    },
  };
}

/** Sweep: deletes the rows of processes without a heartbeat for an hour. Returns their number. */
export async function purgeProcesses({ db }: Pick<Database, 'db'>): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('processes')
    .where('last_seen_at', '<', sql<Date>`now() - interval '1 hour'`)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
