import { type NotNull, sql } from 'kysely';
import { DUE_NOW } from '../database/database-time.ts';
import type { Db } from '../database/tables.ts';

export interface DeadCommand {
  id: string;
  organizationId: string;
  workflowId: string | null;
  attempts: number;
  lastError: string | null;
  createdAt: Date;
  deadAt: Date;
}

export const MAX_LISTED = 1_000;
/** Commands that one call makes due again. */
export const MAX_RETRIED = 1_000;

/** Commands whose delivery to Temporal failed permanently, oldest first. For workers, and for staff. */
export function listDeadCommands(db: Db, limit: number = MAX_LISTED): Promise<DeadCommand[]> {
  return db
    .selectFrom('outbox')
    .select([
      sql<string>`outbox.id::text`.as('id'),
      'org_id as organizationId',
      sql<string | null>`coalesce(command -> 'start' ->> 'workflowId', command -> 'signal' ->> 'workflowId',
        command -> 'control' ->> 'workflowId', command -> 'unpause' ->> 'scheduleId')`.as('workflowId'),
      'attempts',
      'last_error as lastError',
      'created_at as createdAt',
      'dead_at as deadAt',
    ])
    .where('dead_at', 'is not', null)
    .$narrowType<{ deadAt: NotNull }>()
    .orderBy('dead_at')
    .orderBy('outbox.id')
    .limit(limit)
    .execute();
}

/** At most {@link MAX_LISTED}. */
export async function countDeadCommands(db: Db): Promise<number> {
  const dead = db
    .selectFrom('outbox')
    .select('id')
    .where('dead_at', 'is not', null)
    .orderBy('dead_at')
    .limit(MAX_LISTED);
  const row = await db
    .selectFrom(dead.as('dead'))
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirst();
  return row?.count ?? 0;
}

/**
 * Makes such commands due again, with all their attempts.
 *
 * @param id of one of them; undefined for the oldest {@link MAX_RETRIED}.
 */
export function retryDeadCommands(db: Db, id?: string): Promise<{ organizationId: string }[]> {
  const dead = db
    .selectFrom('outbox')
    .select('id')
    .where('dead_at', 'is not', null)
    .$if(id !== undefined, (query) => query.where(sql`id::text`, '=', id))
    .orderBy('dead_at')
    .orderBy('id')
    .limit(MAX_RETRIED)
    .forUpdate();
  return db
    .updateTable('outbox')
    .set({ dead_at: null, attempts: 0, available_at: DUE_NOW })
    .where('id', 'in', dead)
    .returning('org_id as organizationId')
    .execute();
}
