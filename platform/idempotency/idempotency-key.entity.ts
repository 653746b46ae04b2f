import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn } from '../database/columns.ts';
import { tenantPolicies } from '../database/policies.ts';

/** An answer kept for 24 h under the caller's Idempotency-Key. Committed with the change it answers for. */
export const IdempotencyKeyEntity = defineEntity({
  name: 'IdempotencyKey',
  tableName: 'idempotency_keys',
  policies: tenantPolicies(),
  indexes: [{ properties: ['createdAt'] }],
  properties: {
    /** SHA-256 over credential, method, path and key. */
    id: p.blob().primary(),
    organizationId: idColumn().fieldName('org_id'),
    /** SHA-256 of the body, to tell a repeat from another request. */
    requestHash: p.blob(),
    status: p.smallint(),
    contentType: p.text(),
    /** The body, sealed (AES-256-GCM). */
    body: p.blob(),
    createdAt: createdAt(),
  },
});

export type IdempotencyKey = InferEntity<typeof IdempotencyKeyEntity>;
