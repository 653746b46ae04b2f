import { raw, sql } from '@mikro-orm/core';
import type { Database } from '../database/database.ts';
import type { SignalCommand, StartCommand } from './outbox-command.ts';

/** A row that is neither final nor moving, with the run that ought to move it. */
export interface OverdueRun {
  start: StartCommand;
  /** What a run that is there is told; empty where its being there is enough. */
  whenRunning?: SignalCommand;
  /** What follows where a person canceled or terminated the run: the row says so, or the run starts again. */
  whenStopped: 'restart' | (() => Promise<void>);
}

export interface OverdueSource {
  name: string;
  /**
   * Takes rows that are overdue, at most `limit`, and marks them as looked at, so that the next call finds others.
   */
  take(limit: number): Promise<OverdueRun[]>;
}

/** A row that was looked at is left alone for this long, where its source does not say otherwise. */
const CHECK_AGAIN_AFTER = '10 minutes';

/**
 * Marks and returns overdue rows of one table in one statement; two reconcilers never take the same row.
 *
 * @param overdue SQL condition on the table's columns, without parameters.
 */
export function takeOverdue<Row extends object>(
  database: Database,
  {
    table,
    overdue,
    columns,
    limit,
    againAfter = CHECK_AGAIN_AFTER,
  }: { table: string; overdue: string; columns: string; limit: number; againAfter?: string },
): Promise<Row[]> {
  return database.autocommit((em) =>
    em.execute<Row[]>(
      sql`update ${sql.ref(table)} set reconciled_at = now() where id in (
         select id from ${sql.ref(table)} where ${raw(overdue)}
           and (reconciled_at is null or reconciled_at < now() - ${againAfter}::interval)
         order by reconciled_at nulls first limit ${limit} for update skip locked)
       returning ${raw(columns)}`,
    ),
  );
}
