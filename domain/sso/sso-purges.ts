import { type DeleteResult, sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';

const BATCH_SIZE = 5_000;

/** Deletes transactions that no login can use any more. Returns the number of deleted rows. */
export async function purgeSsoTransactions({ db }: Database): Promise<number> {
  const deleted = await db
    .deleteFrom('sso_transactions')
    .where('token_hash', 'in', (eb) =>
      eb
        .selectFrom('sso_transactions')
        .select('token_hash')
        .where('expires_at', '<', sql<Date>`now()`)
        .limit(BATCH_SIZE),
    )
    .executeTakeFirst();
  return countDeleted(deleted);
}

/** Deletes used assertions that have expired and would be refused anyway. */
export async function purgeSsoAssertions({ db }: Database): Promise<number> {
  const deleted = await db
    .deleteFrom('sso_assertions')
    .where(({ refTuple, selectFrom, eb }) =>
      eb(
        refTuple('configuration_id', 'assertion_hash'),
        'in',
        selectFrom('sso_assertions')
          .select(['configuration_id', 'assertion_hash'])
          .where('expires_at', '<', sql<Date>`now()`)
          .limit(BATCH_SIZE)
          .$asTuple('configuration_id', 'assertion_hash'),
      ),
    )
    .executeTakeFirst();
  return countDeleted(deleted);
}

/** Deletes set-up links a week after their end. Until then they count for the limit of links to an address. */
export async function purgeSsoSetupLinks({ db }: Database): Promise<number> {
  const deleted = await db
    .deleteFrom('sso_setup_links')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('sso_setup_links')
        .select('id')
        .where('expires_at', '<', sql<Date>`now() - interval '7 days'`)
        .limit(BATCH_SIZE),
    )
    .executeTakeFirst();
  return countDeleted(deleted);
}

/** Deletes attempts that are older than seven days. */
export async function purgeSsoAttempts({ db }: Database): Promise<number> {
  const deleted = await db
    .deleteFrom('sso_attempts')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('sso_attempts')
        .select('id')
        .where('created_at', '<', sql<Date>`now() - interval '7 days'`)
        .limit(BATCH_SIZE),
    )
    .executeTakeFirst();
  return countDeleted(deleted);
}

const countDeleted = (result: DeleteResult | undefined): number => Number(result?.numDeletedRows ?? 0);
