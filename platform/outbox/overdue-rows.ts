import { type RawBuilder, type SelectQueryBuilder, sql } from 'kysely';
import { anyLocked } from '../database/any-of.ts';
import type { SignalCommand, StartCommand } from './outbox-command.ts';

/** A row whose workflow run should have changed it by now, and how to recover it. */
export interface OverdueRun {
  start: StartCommand;
  /** Sent if the run exists; undefined if its existence is enough. */
  whenRunning?: SignalCommand;
  /**
   * If an operator canceled or terminated the run: start it again, or record that in the row. The function resolves with
   * `restart` if something remains that needs a run.
   */
  whenStopped: 'restart' | (() => Promise<void>) | (() => Promise<'restart' | undefined>);
}

export interface OverdueSource {
  name: string;
  /** Returns at most `limit` overdue rows and marks them as reconciled, so the next call returns other rows. */
  take(limit: number): Promise<OverdueRun[]>;
}

/** Minimum time between two checks of a row, unless its source sets another. */
const RECHECK_MINUTES = 10;

/** Marks the rows of {@link lockOverdue} as checked, in the statement that returns them. */
export const RECONCILED = { reconciled_at: sql<Date>`now()` };

export const minutesAgo = (minutes: number): RawBuilder<Date> =>
  sql`now() - ${minutes}::int * interval '1 minute'`;

/**
 * The right side of `=` for the ids of a query for overdue rows, those that were checked longest ago first. Concurrent
 * reconcilers never take the same row.
 *
 * @param options.recheckMinutes minimum time between two checks of a row.
 */
export const lockOverdue = <DB, Table extends keyof DB>(
  overdue: SelectQueryBuilder<DB, Table, { id: string }>,
  { limit, recheckMinutes = RECHECK_MINUTES }: { limit: number; recheckMinutes?: number },
): RawBuilder<string> =>
  anyLocked(
    overdue
      .where(sql<boolean>`(reconciled_at is null or reconciled_at < ${minutesAgo(recheckMinutes)})`)
      .orderBy(sql`reconciled_at nulls first`)
      .limit(limit)
      .forUpdate()
      .skipLocked(),
  );
