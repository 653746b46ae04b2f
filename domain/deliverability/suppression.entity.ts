import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

export const SUPPRESSION_ORIGINS = ['bounce', 'complaint', 'manual', 'unsubscribe'] as const;
export type SuppressionOrigin = (typeof SUPPRESSION_ORIGINS)[number];

/** Where a suppression applies. */
export const SUPPRESSION_SCOPES = ['organization', 'environment', 'inbox'] as const;
export type SuppressionScope = (typeof SUPPRESSION_SCOPES)[number];

/** An address to which an organization, one of its environments or one of its inboxes does not send. */
export const SuppressionEntity = defineEntity({
  name: 'Suppression',
  tableName: 'suppressions',
  policies: tenantPolicies(),
  uniques: [{ properties: ['organizationId', 'email', 'scopeId'] }],
  indexes: [{ properties: ['organizationId', 'id'] }],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** Normalized by `toAddressKey`. */
    email: p.text(),
    /**
     * Where it applies: the organization, or for `manual` the environment or inbox that the credential was bound to. It
     * is one id rather than two nullable columns, so that one index serves both lookup and uniqueness.
     */
    scopeId: idColumn(),
    origin: p.text().$type<SuppressionOrigin>(),
    /** The environment of the message, or of the credential that added it; null for an organization-wide credential. */
    environmentId: idColumn().fieldName('env_id').strictNullable(),
    inboxId: idColumn().strictNullable(),
    /**
     * The message that bounced or was complained about; null for `manual` and
     * `unsubscribe`.
     */
    messageId: idColumn().strictNullable(),
    /** Enhanced status code (RFC 3463) of the bounce; null if there is none. */
    status: p.text().strictNullable(),
    diagnostic: p.text().strictNullable(),
    createdAt: createdAt(),
  },
});

export type Suppression = InferEntity<typeof SuppressionEntity>;

export function scopeOfSuppression({ scopeId, organizationId, inboxId }: Suppression): SuppressionScope {
  if (scopeId === organizationId) return 'organization';
  return scopeId === inboxId ? 'inbox' : 'environment';
}
