import { sql } from 'kysely';
import { type Adapter, errors, type Payload } from 'oidc-provider';
import { sha256 } from '../../platform/crypto.ts';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import { networkOf } from '../../platform/network.ts';
import { hashConnectionToken } from './connection-token.ts';

/** Of one network: an IPv4 address or an IPv6 /64. They end after half an hour, or with the person's decision. */
const MAX_OPEN_REQUESTS = 200;

/**
 * Keeps requests for authorization until the person decides, under the hash of the id that the browser's cookie has. A request
 * needs no credential, so requests are limited by network.
 *
 * @param findAddress the address of the client of the running request.
 */
export function createRequestAdapter({
  database,
  findAddress,
}: {
  database: Pick<Database, 'peopleTransaction'>;
  findAddress(): string;
}): Pick<Adapter, 'upsert' | 'find' | 'destroy'> {
  return {
    async upsert(id, { jti: _, ...payload }: Payload, expiresInSeconds) {
      const stored = {
        payload: json(payload as Record<string, unknown>),
        expires_at: sql<Date>`now() + make_interval(secs => ${expiresInSeconds})`,
      };
      await database.peopleTransaction(async ({ db }) => {
        const { numUpdatedRows } = await db
          .updateTable('connection_tokens')
          .set(stored)
          .where('token_hash', '=', hashConnectionToken(id))
          .where('kind', '=', 'interaction')
          .executeTakeFirstOrThrow(() => new Error('PostgreSQL did not answer an update'));
        if (numUpdatedRows > 0n) return;
        const networkHash = sha256(`connection request:${networkOf(findAddress())}`);
        await requireFewOpen(db, networkHash);
        await db
          .insertInto('connection_tokens')
          .values({
            token_hash: hashConnectionToken(id),
            kind: 'interaction',
            network_hash: networkHash,
            ...stored,
          })
          .execute();
      });
    },

    async find(id) {
      const row = await database.peopleTransaction(({ db }) =>
        db
          .selectFrom('connection_tokens')
          .select('payload')
          .where('token_hash', '=', hashConnectionToken(id))
          .where('kind', '=', 'interaction')
          .where('expires_at', '>', sql<Date>`now()`)
          .executeTakeFirst(),
      );
      return row && { ...row.payload, jti: id };
    },

    async destroy(id) {
      const { numDeletedRows } = await database.peopleTransaction(({ db }) =>
        db
          .deleteFrom('connection_tokens')
          .where('token_hash', '=', hashConnectionToken(id))
          .where('kind', '=', 'interaction')
          .executeTakeFirstOrThrow(() => new Error('PostgreSQL did not answer a deletion')),
      );
      // Of two that go on with the same decision at once, one gets a code.
      if (numDeletedRows === 0n) throw new errors.SessionNotFound('the request was answered already');
    },
  };
}

async function requireFewOpen(db: Db, networkHash: Buffer): Promise<void> {
  await lockKey(db, 'connection request', networkHash.toString('hex'));
  const open = await db
    .selectFrom('connection_tokens')
    .select((eb) => eb.fn.countAll<string>().as('count'))
    .where('network_hash', '=', networkHash)
    .where('expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst();
  if (Number(open?.count ?? 0) < MAX_OPEN_REQUESTS) return;
  const error = new errors.OIDCProviderError(429, 'temporarily_unavailable');
  error.error_description = 'Too many requests for authorization from this network wait for a person.';
  throw error;
}
