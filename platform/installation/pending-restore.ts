import { type SqlBool, sql } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from '../database/database.ts';
import { AppError } from '../errors.ts';

/** Exists from the beginning of `npm run restore` until the database is complete and marked as restored. */
export const UNFINISHED_RESTORE_SCHEMA = 'agent_email_restore';

/** SQL: the database was restored and is not reconciled. */
export const IS_RESTORE_PENDING = sql<SqlBool>`(exists (select from restores where reconciled_at is null)
  or exists (select from pg_namespace where nspname = ${UNFINISHED_RESTORE_SCHEMA}))`;

/** SQL: the database was copied to another cluster, and `npm run migrate` has not marked it yet. */
const IS_IN_OTHER_CLUSTER = sql<SqlBool>`exists (
  select from installation where system_identifier <> (select system_identifier::text from pg_control_system()))`;

export const RESTORE_PENDING_DETAIL =
  'The database was restored from a backup and is not reconciled: mail could be sent again. Run `npm run restore:reconcile`.';

/** A worker that ran during the restore must not send either. It retries until the database is reconciled. */
export const restorePending = (): AppError =>
  new AppError('unavailable', {
    detail: RESTORE_PENDING_DETAIL,
    fix: 'Run the command; work continues by itself.',
  });

/** @throws AppError `unavailable` until a restored database is reconciled. */
export async function requireReconciled({ db }: Pick<Database, 'db'>): Promise<void> {
  const row = await db.selectNoFrom(IS_RESTORE_PENDING.as('isPending')).executeTakeFirst();
  if (row?.isPending) throw restorePending();
}

const CHECK_INTERVAL_MS = 2_000;
const LOG_EVERY = 15;

/** Waits until a restored database is reconciled. Returns immediately if it is. */
export async function waitUntilReconciled(
  { db }: Pick<Database, 'db'>,
  logger: Pick<Logger, 'error'>,
): Promise<void> {
  for (let checks = 0; ; checks += 1) {
    const row = await db
      .selectNoFrom(sql<boolean>`${IS_RESTORE_PENDING} or ${IS_IN_OTHER_CLUSTER}`.as('isPending'))
      .executeTakeFirst();
    if (!row?.isPending) return;
    if (checks % LOG_EVERY === 0) logger.error(RESTORE_PENDING_DETAIL);
    await new Promise((resolve) => setTimeout(resolve, CHECK_INTERVAL_MS));
  }
}
