import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

export const SUPPRESSION_ORIGINS = ['bounce', 'complaint', 'manual'] as const;
export type SuppressionOrigin = (typeof SUPPRESSION_ORIGINS)[number];

/** An address the organization sends nothing to. */
export const SuppressionEntity = defineEntity({
  name: 'Suppression',
  tableName: 'suppressions',
  policies: tenantPolicies(),
  uniques: [{ properties: ['organizationId', 'email'] }],
  indexes: [{ properties: ['organizationId', 'id'] }],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** As {@link addressKey} writes it. */
    email: p.text(),
    origin: p.text().$type<SuppressionOrigin>(),
    /** Where it comes from: the message's, or the binding of the credential; empty for an organization-wide one. */
    environmentId: idColumn().fieldName('env_id').strictNullable(),
    inboxId: idColumn().strictNullable(),
    /** The message that bounced or was complained of; empty for `manual`. */
    messageId: idColumn().strictNullable(),
    /** Enhanced status code (RFC 3463) of the bounce; empty where there is none. */
    status: p.text().strictNullable(),
    diagnostic: p.text().strictNullable(),
    createdAt: createdAt(),
  },
});

export type Suppression = InferEntity<typeof SuppressionEntity>;
