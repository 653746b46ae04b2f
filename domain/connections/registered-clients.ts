import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import { hashConnectionToken } from './connection-token.ts';

/** Records that a token was issued to a registered client. Other clients have no row. */
export async function markClientUsed(
  database: Pick<Database, 'peopleTransaction'>,
  clientId: string,
): Promise<void> {
  await database.peopleTransaction(({ db }) =>
    db
      .updateTable('connection_clients')
      .set({ last_used_at: sql<Date>`now()` })
      .where('id_hash', '=', hashConnectionToken(clientId))
      .execute(),
  );
}
