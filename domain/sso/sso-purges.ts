import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { deleteRows } from '../../platform/database/delete-rows.ts';

const BATCH_SIZE = 5_000;

/** Deletes what no login can use any more. Returns the number of deleted rows. */
export function purgeSsoTransactions(database: Database): Promise<number> {
  return deleteRows(
    database,
    sql`delete from sso_transactions where token_hash in (
         select token_hash from sso_transactions where expires_at < now() limit ${BATCH_SIZE})`,
  );
}

/** Deletes used assertions that have expired: they would be refused anyway. */
export function purgeSsoAssertions(database: Database): Promise<number> {
  return deleteRows(
    database,
    sql`delete from sso_assertions where (configuration_id, assertion_hash) in (
         select configuration_id, assertion_hash from sso_assertions where expires_at < now() limit ${BATCH_SIZE})`,
  );
}

/** Deletes set-up links a week after their end. Until then they limit how often an address gets one. */
export function purgeSsoSetupLinks(database: Database): Promise<number> {
  return deleteRows(
    database,
    sql`delete from sso_setup_links where id in (
         select id from sso_setup_links where expires_at < now() - interval '7 days' limit ${BATCH_SIZE})`,
  );
}

/** Deletes attempts that are older than seven days. */
export function purgeSsoAttempts(database: Database): Promise<number> {
  return deleteRows(
    database,
    sql`delete from sso_attempts where id in (
         select id from sso_attempts where created_at < now() - interval '7 days' limit ${BATCH_SIZE})`,
  );
}
