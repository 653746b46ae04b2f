import { sql } from 'kysely';
import { type SecretBox, sha256 } from '../crypto.ts';
import type { Transaction } from '../database/database.ts';
import type { SealedColumn } from '../sealed-column.ts';

/**
 * Two requests are the same if organization, credential, method, path and key are equal: a person acts in several
 * organizations. Packages store a response after the request; this store commits it in the transaction of the change.
 */
export interface IdempotentRequest {
  organizationId: string;
  credentialId: string;
  method: string;
  path: string;
  key: string;
}

export interface StoredResponse {
  status: number;
  contentType: string;
  body: string;
}

export interface IdempotencyStore {
  /**
   * Locks the key until the transaction ends.
   *
   * @returns false if another transaction has locked it.
   */
  claim(transaction: Transaction, id: Buffer): Promise<boolean>;
  /**
   * @returns the response stored under the key; `different-request` if the body was different; `deleted` if what the response
   * shows was deleted, and the response with it.
   * @param request.validForMs how long the response counts, if that is less than it is stored.
   */
  find(
    transaction: Transaction,
    id: Buffer,
    request: { requestHash: Buffer; validForMs?: number | undefined },
  ): Promise<StoredResponse | 'different-request' | 'deleted' | null>;
  /** Stores a response in the transaction of the change: both commit or neither. */
  save(
    transaction: Transaction,
    entry: { id: Buffer; organizationId: string; requestHash: Buffer; response: StoredResponse },
  ): Promise<void>;
}

/** Responses are stored for this long. After that, a request with the same key is a new request. */
const IDEMPOTENCY_RETENTION_MS = 24 * 3_600_000;

export function createIdempotencyId(request: IdempotentRequest): Buffer {
  const { organizationId, credentialId, method, path, key } = request;
  return sha256(JSON.stringify([organizationId, credentialId, method, path, key]));
}

export function createIdempotencyStore({ secretBox }: { secretBox: SecretBox }): IdempotencyStore {
  return {
    async claim({ db }, id) {
      const lock = id.readBigInt64BE().toString();
      const row = await db
        .selectNoFrom(sql<boolean>`pg_try_advisory_xact_lock(${lock}::bigint)`.as('claimed'))
        .executeTakeFirst();
      return row?.claimed === true;
    },

    async find({ db }, id, { requestHash, validForMs = IDEMPOTENCY_RETENTION_MS }) {
      const stored = await db
        .selectFrom('idempotency_keys')
        .select(['request_hash as requestHash', 'status', 'content_type as contentType', 'body'])
        .where('id', '=', id)
        .where('created_at', '>', new Date(Date.now() - validForMs))
        .executeTakeFirst();
      if (!stored) return null;
      if (!requestHash.equals(stored.requestHash)) return 'different-request';
      if (stored.body === null) return 'deleted';
      return {
        status: stored.status,
        contentType: stored.contentType,
        body: secretBox.open(stored.body, sealContext(id)),
      };
    },

    async save({ db }, { id, organizationId, requestHash, response }) {
      const stored = {
        org_id: organizationId,
        request_hash: requestHash,
        status: response.status,
        content_type: response.contentType,
        body: secretBox.seal(response.body, sealContext(id)),
        resource_id: readResourceId(response),
        created_at: new Date(),
      };
      await db
        .insertInto('idempotency_keys')
        .values({ id, ...stored })
        .onConflict((conflict) => conflict.column('id').doUpdateSet(stored))
        .execute();
    },
  };
}

const MAX_ID_LENGTH = 64;

/** Responses are JSON; a problem has no `id`. */
function readResourceId({ body }: StoredResponse): string | null {
  const { id } = (body === '' ? {} : JSON.parse(body)) as { id?: unknown };
  return typeof id === 'string' && id.length <= MAX_ID_LENGTH ? id : null;
}

const sealContext = (id: Buffer) => `idempotency/${id.toString('hex')}`;

export const IDEMPOTENT_RESPONSES: SealedColumn = {
  table: 'idempotency_keys',
  column: 'body',
  key: ['id'],
  context: ({ id }) => sealContext(id as Buffer),
};
