import { sql } from '@mikro-orm/core';
import type { Database } from '../database/database.ts';

export interface DeadCommand {
  id: string;
  organizationId: string;
  workflowId: string | null;
  attempts: number;
  lastError: string | null;
  deadAt: string;
}

const MAX_LISTED = 1_000;

/** Commands whose delivery to Temporal failed permanently, oldest first; at most 1,000. */
export function listDeadCommands(database: Pick<Database, 'query'>): Promise<DeadCommand[]> {
  return database.query<DeadCommand>(
    sql`select id, org_id as "organizationId",
        coalesce(command -> 'start' ->> 'workflowId', command -> 'signal' ->> 'workflowId',
          command -> 'control' ->> 'workflowId') as "workflowId",
        attempts, last_error as "lastError", dead_at as "deadAt"
      from outbox where dead_at is not null order by dead_at limit ${MAX_LISTED}`,
  );
}

/**
 * Makes such commands due again, with all their attempts.
 *
 * @param id of one of them; undefined for all.
 * @returns their number.
 */
export async function retryDeadCommands(database: Pick<Database, 'query'>, id?: string): Promise<number> {
  const retried = await database.query<object>(
    sql`update outbox set dead_at = null, attempts = 0, available_at = now()
      where dead_at is not null and ${id === undefined ? sql`true` : sql`id::text = ${id}`} returning id`,
  );
  return retried.length;
}
