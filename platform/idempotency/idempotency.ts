import { sql } from '@mikro-orm/core';
import { type SecretBox, sha256 } from '../crypto.ts';
import type { Transaction } from '../database/database.ts';
import { IdempotencyKeyEntity } from './idempotency-key.entity.ts';

/** What makes two requests the same one: who asks, for what, under which key. */
export interface IdempotentRequest {
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
   * Takes the key for the length of the transaction.
   *
   * @returns false while another transaction has it.
   */
  claim(transaction: Transaction, id: Buffer): Promise<boolean>;
  /** @returns the answer kept under the key; `other-request` where the body was another one. */
  find(
    transaction: Transaction,
    id: Buffer,
    requestHash: Buffer,
  ): Promise<StoredResponse | 'other-request' | null>;
  /** Keeps an answer with the change it belongs to: both commit or neither. */
  save(
    transaction: Transaction,
    entry: { id: Buffer; organizationId: string; requestHash: Buffer; answer: StoredResponse },
  ): Promise<void>;
}

/** A key is forgotten after this long; the same key is then a new request. */
export const IDEMPOTENCY_RETENTION_MS = 24 * 3_600_000;

export function createIdempotencyId({ credentialId, method, path, key }: IdempotentRequest): Buffer {
  return sha256(JSON.stringify([credentialId, method, path, key]));
}

export function createIdempotencyStore({ secretBox }: { secretBox: SecretBox }): IdempotencyStore {
  return {
    async claim({ em }, id) {
      const [row] = await em.execute<{ claimed: boolean }[]>(
        sql`select pg_try_advisory_xact_lock(${id.readBigInt64BE().toString()}::bigint) as claimed`,
      );
      return row?.claimed === true;
    },

    async find({ em }, id, requestHash) {
      const kept = await em.findOne(IdempotencyKeyEntity, {
        id,
        createdAt: { $gt: new Date(Date.now() - IDEMPOTENCY_RETENTION_MS) },
      });
      if (!kept) return null;
      if (!requestHash.equals(kept.requestHash)) return 'other-request';
      return {
        status: kept.status,
        contentType: kept.contentType,
        body: secretBox.open(kept.body, sealContext(id)),
      };
    },

    async save({ em }, { id, organizationId, requestHash, answer }) {
      await em.upsert(IdempotencyKeyEntity, {
        id,
        organizationId,
        requestHash,
        status: answer.status,
        contentType: answer.contentType,
        body: secretBox.seal(answer.body, sealContext(id)),
        createdAt: new Date(),
      });
    },
  };
}

const sealContext = (id: Buffer) => `idempotency/${id.toString('hex')}`;
