import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import type { Permission } from '../identity/permissions.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** A credential for the API. The token itself is returned once and never stored. */
export const ApiKeyEntity = defineEntity({
  name: 'ApiKey',
  tableName: 'api_keys',
  policies: tenantPolicies({ lookup: true, people: true, staff: true }),
  indexes: [
    { properties: ['organizationId', 'id'] },
    { properties: ['createdByKeyId'] },
    { properties: ['organizationId', 'createdByUserId'] },
    {
      name: 'api_keys_expires_at_index',
      expression: `create index "api_keys_expires_at_index" on "api_keys" ("expires_at") where "revoked_at" is null and "expires_at" is not null`,
    },
  ],
  triggers: [
    functionTrigger({
      name: 'signal_api_keys_access',
      table: 'api_keys',
      event: 'update',
      when: `old.revoked_at is distinct from new.revoked_at or old.expires_at is distinct from new.expires_at
        or old.token_hash is distinct from new.token_hash or old.previous_token_hash is distinct from new.previous_token_hash
        or old.previous_expires_at is distinct from new.previous_expires_at or old.permissions is distinct from new.permissions
        or old.allowed_cidrs is distinct from new.allowed_cidrs`,
      calls: 'signal_access',
    }),
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** Null: every environment of the organization. */
    environmentId: () =>
      p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').strictNullable().deleteRule('cascade'),
    /** Null: every inbox of the environment. */
    inboxId: () =>
      p.manyToOne(InboxEntity).mapToPk().fieldName('inbox_id').strictNullable().deleteRule('cascade'),
    name: p.text(),
    tokenHash: p.blob().unique(),
    lastFour: p.text(),
    /** The token before the last rotation, which works until `previousExpiresAt`; null if there is none. */
    previousTokenHash: p.blob().unique().strictNullable(),
    previousLastFour: p.text().strictNullable(),
    previousExpiresAt: timestamp().strictNullable(),
    /** Shows whether clients still use the previous token. Updated at most once a minute. */
    previousLastUsedAt: timestamp().strictNullable(),
    permissions: p.array().$type<Permission[]>(),
    /** The key that created this one; null if a person or the installation did. Keys are revoked, never deleted. */
    createdByKeyId: idColumn().strictNullable(),
    /** The person who created the key, directly or through other keys; null for the installation. */
    createdByUserId: idColumn().strictNullable(),
    expiresAt: timestamp().strictNullable(),
    /** When the person behind the key was informed that it expires soon. */
    expiryNotifiedAt: timestamp().strictNullable(),
    revokedAt: timestamp().strictNullable(),
    /** Ranges from which the key may be used. Empty: every address. */
    allowedCidrs: p.array().default([]),
    /** Updated at most once a minute, so requests rarely cause a write. */
    lastUsedAt: timestamp().strictNullable(),
    /** The client's address at `lastUsedAt`. */
    lastUsedFrom: p.text().strictNullable(),
    createdAt: createdAt(),
  },
});

export type ApiKey = InferEntity<typeof ApiKeyEntity>;
