import { sql } from '@mikro-orm/core';
import type { Sql } from '../database/sql.ts';

export interface DeadCommand {
  id: string;
  organizationId: string;
  workflowId: string | null;
  attempts: number;
  lastError: string | null;
  createdAt: string;
  deadAt: string;
}

/** Runs a statement: of a worker, or of staff. */
interface StatementRunner {
  execute<Rows extends object[]>(query: Sql): Promise<Rows>;
}

export const MAX_LISTED = 1_000;
/** Commands that one call makes due again. */
export const MAX_RETRIED = 1_000;

/** Commands whose delivery to Temporal failed permanently, oldest first. */
export function listDeadCommands(
  database: StatementRunner,
  limit: number = MAX_LISTED,
): Promise<DeadCommand[]> {
  return database.execute<DeadCommand[]>(
    sql`select id::text as id, org_id as "organizationId",
        coalesce(command -> 'start' ->> 'workflowId', command -> 'signal' ->> 'workflowId',
          command -> 'control' ->> 'workflowId', command -> 'unpause' ->> 'scheduleId') as "workflowId",
        attempts, last_error as "lastError", created_at as "createdAt", dead_at as "deadAt"
      from outbox where dead_at is not null order by dead_at, outbox.id limit ${limit}`,
  );
}

/** At most {@link MAX_LISTED}. */
export async function countDeadCommands(database: StatementRunner): Promise<number> {
  const [row] = await database.execute<{ count: number }[]>(
    sql`select count(*)::int as count from (
        select from outbox where dead_at is not null order by dead_at limit ${MAX_LISTED}) dead`,
  );
  return row?.count ?? 0;
}

/**
 * Makes such commands due again, with all their attempts.
 *
 * @param id of one of them; undefined for the oldest {@link MAX_RETRIED}.
 */
export function retryDeadCommands(
  database: StatementRunner,
  id?: string,
): Promise<{ organizationId: string }[]> {
  return database.execute<{ organizationId: string }[]>(
    sql`update outbox set dead_at = null, attempts = 0, available_at = now()
      where id in (
        select id from outbox where dead_at is not null and ${id === undefined ? sql`true` : sql`id::text = ${id}`}
        order by dead_at, id limit ${MAX_RETRIED} for update)
      returning org_id as "organizationId"`,
  );
}
