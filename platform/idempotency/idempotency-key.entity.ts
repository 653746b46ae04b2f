import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn } from '../database/columns.ts';
import { tenantPolicies } from '../database/policies.ts';

/** A response stored for 24 hours under the caller's Idempotency-Key, committed together with the request's change. */
export const IdempotencyKeyEntity = defineEntity({
  name: 'IdempotencyKey',
  tableName: 'idempotency_keys',
  policies: tenantPolicies(),
  indexes: [
    { properties: ['createdAt'] },
    {
      name: 'idempotency_keys_resource_index',
      expression: `create index "idempotency_keys_resource_index" on "idempotency_keys" ("resource_id") where "resource_id" is not null`,
    },
  ],
  properties: {
    /** SHA-256 of organization, credential, method, path and key. */
    id: p.blob().primary(),
    organizationId: idColumn().fieldName('org_id'),
    /** SHA-256 of the body, to distinguish a repeated request from a different one. */
    requestHash: p.blob(),
    status: p.smallint(),
    contentType: p.text(),
    /** The body, sealed (AES-256-GCM); null once what it shows was deleted. */
    body: p.blob().strictNullable(),
    /** The `id` of the body; null if it has none. */
    resourceId: idColumn().strictNullable(),
    createdAt: createdAt(),
  },
});

export type IdempotencyKey = InferEntity<typeof IdempotencyKeyEntity>;
