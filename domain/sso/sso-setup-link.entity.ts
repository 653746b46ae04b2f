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
    /** Where the link was mailed; null if it was only returned. Lower case. */
    email: p.text().strictNullable(),
    tokenHash: p.blob().unique(),
    /** The person who created it; null if a key did. */
    createdByUserId: idColumn().strictNullable(),
    createdByKeyId: idColumn().strictNullable(),
    /** The draft that was created with it; null before, and when it is deleted. */
    configurationId: () =>
      p
        .manyToOne(SsoConfigurationEntity)
        .mapToPk()
        .fieldName('configuration_id')
        .strictNullable()
        .deleteRule('set null'),
    /** Hash of the cookie of the browser that used the link. */
    sessionHash: p.blob().strictNullable().unique(),
    /** End of the link; once it is used, of its session. */
    expiresAt: timestamp(),
    usedAt: timestamp().strictNullable(),
    revokedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

export type SsoSetupLink = InferEntity<typeof SsoSetupLinkEntity>;
