import { sql } from 'kysely';
import { type Adapter, errors, type Payload } from 'oidc-provider';
import type { Database } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { ConnectionTokenKind } from './connection.entity.ts';
import { hashConnectionToken } from './connection-token.ts';

/** Requests for authorization are kept elsewhere. */
export type IssuedKind = Exclude<ConnectionTokenKind, 'interaction'>;

/**
 * Tokens of a connection that are kept, of each kind: the access tokens that work side by side, and the refresh tokens whose
 * reuse ends the connection. Older ones are refused all the same, because they are unknown.
 */
const MAX_KEPT: Record<IssuedKind, number> = {
  authorization_code: 100,
  access_token: 100,
  refresh_token: 1_000,
};

/** How long a client may repeat the last rotation of its refresh token, because the answer may have been lost. */
const RETRY_SECONDS = 30;

export interface TokenAdapterOptions {
  database: Pick<Database, 'peopleTransaction'>;
  /** The refresh tokens that the rotation of one can have led to, one for each signing key. */
  findSuccessors(refreshToken: string): string[];
  /** Ends a connection because one of its codes or tokens was used twice. */
  endReused(connectionId: string): Promise<void>;
}

/** Keeps codes and tokens. The database stores only hashes of their values, so a copy of it opens nothing. */
export function createTokenAdapter(kind: IssuedKind, options: TokenAdapterOptions): Adapter {
  const { database, findSuccessors, endReused } = options;

  /** Whether a refresh token that was rotated is being repeated, and the token that the rotation led to is unused. */
  async function isRetry(value: string, { consumedAgo }: { consumedAgo: number | null }): Promise<boolean> {
    if (kind !== 'refresh_token' || consumedAgo === null || consumedAgo > RETRY_SECONDS) return false;
    const hashes = findSuccessors(value).map(hashConnectionToken);
    const used = await database.peopleTransaction(({ db }) =>
      db
        .selectFrom('connection_tokens')
        .select('kind')
        .where('token_hash', '=', sql<Buffer>`any(${hashes}::bytea[])`)
        .where('consumed_at', 'is not', null)
        .executeTakeFirst(),
    );
    return used === undefined;
  }

  return {
    async upsert(value, { jti: _, ...payload }, expiresInSeconds) {
      await database.peopleTransaction(async ({ db }) => {
        await db
          .insertInto('connection_tokens')
          .values({
            token_hash: hashConnectionToken(value),
            kind,
            connection_id: payload.grantId ?? null,
            payload: json(payload as Record<string, unknown>),
            expires_at: sql<Date>`now() + make_interval(secs => ${expiresInSeconds})`,
          })
          // A rotation that is repeated leads to the same token, which may be used by now, and stays so.
          .onConflict((conflict) => conflict.doNothing())
          .execute();
        if (payload.grantId === undefined) return;
        await deleteSurplus(db, payload.grantId, kind);
        await recordClientUse(db, String(payload.clientId));
      });
    },

    async find(value) {
      const row = await database.peopleTransaction(({ db }) =>
        db
          .selectFrom('connection_tokens')
          .select([
            'payload',
            sql<number | null>`extract(epoch from now() - consumed_at)::float8`.as('consumedAgo'),
          ])
          .where('token_hash', '=', hashConnectionToken(value))
          .where('kind', '=', kind)
          .where('expires_at', '>', sql<Date>`now()`)
          .executeTakeFirst(),
      );
      if (!row) return undefined;
      const payload: Payload = { ...row.payload, jti: value };
      if (row.consumedAgo === null || (await isRetry(value, row))) return payload;
      return { ...payload, consumed: true };
    },

    async consume(value) {
      const { isFirst, connectionId } = await database.peopleTransaction(async ({ db }) => {
        const row = await db
          .selectFrom('connection_tokens')
          .select(['connection_id as connectionId', 'consumed_at as consumedAt'])
          .where('token_hash', '=', hashConnectionToken(value))
          .where('kind', '=', kind)
          .forUpdate()
          .executeTakeFirst();
        if (!row) throw new errors.InvalidGrant('it is no longer valid');
        if (row.consumedAt === null)
          await db
            .updateTable('connection_tokens')
            .set({ consumed_at: sql<Date>`now()` })
            .where('token_hash', '=', hashConnectionToken(value))
            .execute();
        return { isFirst: row.consumedAt === null, connectionId: row.connectionId };
      });
      // Two at once have both found it unused. A refresh token that is repeated leads to the same one.
      if (isFirst || kind === 'refresh_token') return;
      if (connectionId !== null) await endReused(connectionId);
      throw new errors.InvalidGrant('it was used already');
    },

    async destroy(value) {
      await database.peopleTransaction(({ db }) =>
        db
          .deleteFrom('connection_tokens')
          .where('token_hash', '=', hashConnectionToken(value))
          .where('kind', '=', kind)
          .execute(),
      );
    },

    async revokeByGrantId(connectionId) {
      await database.peopleTransaction(({ db }) =>
        db
          .deleteFrom('connection_tokens')
          .where('connection_id', '=', connectionId)
          .where('kind', '=', kind)
          .execute(),
      );
    },

    findByUid: async () => undefined,
    findByUserCode: async () => undefined,
  };
}

/** A client that asks for tokens all the time cannot fill the table. */
async function deleteSurplus(db: Db, connectionId: string, kind: IssuedKind): Promise<void> {
  await db
    .deleteFrom('connection_tokens')
    .where('token_hash', 'in', (eb) =>
      eb
        .selectFrom('connection_tokens')
        .select('token_hash')
        .where('connection_id', '=', connectionId)
        .where('kind', '=', kind)
        .orderBy('created_at', 'desc')
        .offset(MAX_KEPT[kind]),
    )
    .execute();
}

/** With the code or token, so that a client with a grant is never deleted as one without. Clients with a document have no row. */
async function recordClientUse(db: Db, clientId: string): Promise<void> {
  await db
    .updateTable('connection_clients')
    .set({ last_used_at: sql<Date>`now()` })
    .where('id_hash', '=', hashConnectionToken(clientId))
    .execute();
}
