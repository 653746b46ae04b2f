import { sql } from 'kysely';
import type { Adapter, Payload } from 'oidc-provider';
import { sha256 } from '../../platform/crypto.ts';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import { networkOf } from '../../platform/network.ts';
import { hashConnectionToken } from './connection-token.ts';
import { RegistrationLimitError } from './registration-limit.ts';

/** Of one network: an IPv4 address or an IPv6 /64. */
const MAX_REGISTRATIONS_PER_HOUR = 20;

/**
 * Keeps clients that registered themselves. Registration needs no credential, so it is limited by network, and a client that
 * no person has connected is deleted after a day.
 *
 * @param findAddress the address of the client of the running request.
 */
export function createClientAdapter({
  database,
  findAddress,
}: {
  database: Pick<Database, 'peopleTransaction'>;
  findAddress(): string;
}): Pick<Adapter, 'upsert' | 'find'> {
  return {
    async upsert(id, { client_id: _, ...metadata }: Payload) {
      const networkHash = sha256(`connection client:${networkOf(findAddress())}`);
      await database.peopleTransaction(async ({ db }) => {
        await requireFewRegistrations(db, networkHash);
        await db
          .insertInto('connection_clients')
          .values({
            id_hash: hashConnectionToken(id),
            metadata: json(metadata as Record<string, unknown>),
            network_hash: networkHash,
          })
          .execute();
      });
    },

    async find(id) {
      const row = await database.peopleTransaction(({ db }) =>
        db
          .selectFrom('connection_clients')
          .select('metadata')
          .where('id_hash', '=', hashConnectionToken(id))
          .executeTakeFirst(),
      );
      return row && { ...row.metadata, client_id: id };
    },
  };
}

async function requireFewRegistrations(db: Db, networkHash: Buffer): Promise<void> {
  await lockKey(db, 'connection client', networkHash.toString('hex'));
  const oldest = await db
    .selectFrom('connection_clients')
    .select(
      sql<number>`ceil(extract(epoch from created_at + interval '1 hour' - now()))::int`.as('waitSeconds'),
    )
    .where('network_hash', '=', networkHash)
    .where('created_at', '>', sql<Date>`now() - interval '1 hour'`)
    .orderBy('created_at', 'desc')
    .offset(MAX_REGISTRATIONS_PER_HOUR - 1)
    .limit(1)
    .executeTakeFirst();
  if (oldest) throw new RegistrationLimitError(oldest.waitSeconds);
}
