import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { SsoConfigurationEntity } from './sso-configuration.entity.ts';

/** Lets a person outside the organization set up single sign-on: one draft and its tests. The link is exchanged once for a session. */
export const SsoSetupLinkEntity = defineEntity({
  name: 'SsoSetupLink',
  tableName: 'sso_setup_links',
  policies: tenantPolicies({ people: true }),
  indexes: [
    { properties: ['organizationId', 'id'] },
    { properties: ['configurationId'] },
    { properties: ['expiresAt'] },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** The address to which the link was mailed, in lower case; null if the link was only returned. */
    email: p.text().strictNullable(),
    tokenHash: p.blob().unique(),
    /** The person who created it; null if a key did. */
    createdByUserId: idColumn().strictNullable(),
    createdByKeyId: idColumn().strictNullable(),
    /** The draft that was created with the link; null before, and after its deletion. */
    configurationId: () =>
      p
        .manyToOne(SsoConfigurationEntity)
        .mapToPk()
        .fieldName('configuration_id')
        .strictNullable()
        .deleteRule('set null'),
    /** Hash of the cookie of the browser that used the link. */
    sessionHash: p.blob().strictNullable().unique(),
    /** When the link expires or, once it is used, its session. */
    expiresAt: timestamp(),
    usedAt: timestamp().strictNullable(),
    revokedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

export type SsoSetupLink = InferEntity<typeof SsoSetupLinkEntity>;
