import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { COMMAND_LINE_CLIENT_ID } from './command-line-client.ts';

/** Rows of one statement; the next sweep continues. */
const BATCH_SIZE = 5_000;
/** Each has an entry in the audit log. */
const ENDED_BATCH_SIZE = 500;

/**
 * Deletes what no request can use: expired tokens and those of ended connections, clients that no person connected within a
 * day or that got no token for 90 days, and connections 90 days after their end. Connections without a token
 * that works, or without their client, end. Returns the number of changed rows.
 */
export async function purgeConnections(
  database: Pick<Database, 'db' | 'systemTransaction'>,
): Promise<number> {
  const { db } = database;
  let count = 0;
  for (const statement of [deleteTokens(db), deleteClients(db), deleteEnded(db)])
    count += (await statement.execute()).length;
  return count + (await database.systemTransaction((transaction) => endUnused(transaction.db)));
}

const deleteTokens = (db: Db) =>
  db
    .deleteFrom('connection_tokens')
    .where('token_hash', 'in', (eb) =>
      eb
        .selectFrom('connection_tokens as t')
        .leftJoin('connections as c', 'c.id', 't.connection_id')
        .select('t.token_hash')
        .where((where) =>
          where.or([where('t.expires_at', '<', sql<Date>`now()`), where('c.ended_at', 'is not', null)]),
        )
        .limit(BATCH_SIZE),
    )
    .returning('kind');

const deleteClients = (db: Db) =>
  db
    .deleteFrom('connection_clients')
    .where('id_hash', 'in', (eb) =>
      eb
        .selectFrom('connection_clients')
        .select('id_hash')
        .where('created_at', '<', sql<Date>`now() - interval '24 hours'`)
        .where((where) =>
          where.or([
            where('last_used_at', 'is', null),
            where('last_used_at', '<', sql<Date>`now() - interval '90 days'`),
          ]),
        )
        .limit(BATCH_SIZE),
    )
    .returning('created_at');

/** A connection gets its first token within a minute of the consent, or never. */
async function endUnused(db: Db): Promise<number> {
  const ended = await endUnusedRows(db).execute();
  for (const { id, organizationId } of ended)
    await recordAudit(
      db,
      { organizationId, actor: { kind: 'system', id }, requestId: newId('request') },
      {
        action: 'connection.ended',
        resourceType: 'connection',
        resourceId: id,
        details: { cause: 'unused' },
      },
    );
  return ended.length;
}

const endUnusedRows = (db: Db) =>
  db
    .updateTable('connections')
    .set({ ended_at: sql<Date>`now()`, end_reason: 'unused' })
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('connections as c')
        .select('c.id')
        .where('c.ended_at', 'is', null)
        .where('c.created_at', '<', sql<Date>`now() - interval '1 hour'`)
        .where((where) =>
          where.or([
            where.not(
              where.exists(
                where
                  .selectFrom('connection_tokens as t')
                  .select('t.kind')
                  .whereRef('t.connection_id', '=', 'c.id')
                  .where('t.expires_at', '>', sql<Date>`now()`),
              ),
            ),
            where.and([
              where('c.client_id', 'not like', 'https://%'),
              where('c.client_id', '<>', COMMAND_LINE_CLIENT_ID),
              where.not(
                where.exists(
                  where
                    .selectFrom('connection_clients as r')
                    .select('r.id_hash')
                    .where('r.id_hash', '=', sql<Buffer>`sha256(convert_to(c.client_id, 'UTF8'))`),
                ),
              ),
            ]),
          ]),
        )
        .limit(ENDED_BATCH_SIZE),
    )
    .returning(['id', 'org_id as organizationId']);

const deleteEnded = (db: Db) =>
  db
    .deleteFrom('connections')
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('connections')
        .select('id')
        .where('ended_at', '<', sql<Date>`now() - interval '90 days'`)
        .limit(BATCH_SIZE),
    )
    .returning('id');
