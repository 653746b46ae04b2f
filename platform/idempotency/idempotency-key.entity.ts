import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn } from '../database/columns.ts';
import { tenantPolicies } from '../database/policies.ts';

/** A response stored for 24 hours under the caller's Idempotency-Key, committed together with the request's change. */
export const IdempotencyKeyEntity = defineEntity({
  name: 'IdempotencyKey',
  tableName: 'idempotency_keys',
  policies: tenantPolicies(),
  indexes: [{ properties: ['createdAt'] }],
  properties: {
    /** SHA-256 of organization, credential, method, path and key. */
    id: p.blob().primary(),
    organizationId: idColumn().fieldName('org_id'),
    /** SHA-256 of the body, to distinguish a repeated request from a different one. */
    requestHash: p.blob(),
    status: p.smallint(),
    contentType: p.text(),
    /** The body, sealed (AES-256-GCM). */
    body: p.blob(),
    createdAt: createdAt(),
  },
});

export type IdempotencyKey = InferEntity<typeof IdempotencyKeyEntity>;
