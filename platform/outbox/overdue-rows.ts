import { raw, sql } from '@mikro-orm/core';
import type { Database } from '../database/database.ts';
import type { SignalCommand, StartCommand } from './outbox-command.ts';

/** A row whose workflow run should have changed it by now, and how to recover it. */
export interface OverdueRun {
  start: StartCommand;
  /** Sent if the run exists; undefined if its existence is enough. */
  whenRunning?: SignalCommand;
  /** If an operator canceled or terminated the run: start it again, or record that in the row. */
  whenStopped: 'restart' | (() => Promise<void>);
}

export interface OverdueSource {
  name: string;
  /** Returns at most `limit` overdue rows and marks them as reconciled, so the next call returns other rows. */
  take(limit: number): Promise<OverdueRun[]>;
}

/** Minimum time between two checks of a row, unless its source sets another. */
const RECHECK_DELAY = '10 minutes';

/**
 * Marks and returns overdue rows of one table in one statement. Concurrent reconcilers never take the same row.
 *
 * @param overdue SQL condition on the table's columns.
 * @param columns SQL select list.
 */
export function takeOverdue<Row extends object>(
  database: Database,
  {
    table,
    overdue,
    columns,
    limit,
    recheckDelay = RECHECK_DELAY,
  }: { table: string; overdue: string; columns: string; limit: number; recheckDelay?: string },
): Promise<Row[]> {
  return database.autocommit((em) =>
    em.execute<Row[]>(
      sql`update ${sql.ref(table)} set reconciled_at = now() where id = any(array(
         select id from ${sql.ref(table)} where ${raw(overdue)}
           and (reconciled_at is null or reconciled_at < now() - ${recheckDelay}::interval)
         order by reconciled_at nulls first limit ${limit} for update skip locked))
       returning ${raw(columns)}`,
    ),
  );
}
