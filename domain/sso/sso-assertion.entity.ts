import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { SsoConfigurationEntity } from './sso-configuration.entity.ts';

/** A SAML assertion that was used. Kept for as long as it would be accepted again. */
export const SsoAssertionEntity = defineEntity({
  name: 'SsoAssertion',
  tableName: 'sso_assertions',
  policies: tenantPolicies({ people: true }),
  indexes: [{ properties: ['expiresAt'] }],
  properties: {
    configurationId: () =>
      p
        .manyToOne(SsoConfigurationEntity)
        .mapToPk()
        .fieldName('configuration_id')
        .primary()
        .deleteRule('cascade'),
    /** Hash of the assertion's ID. */
    assertionHash: p.blob().primary(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    expiresAt: timestamp(),
  },
});

export type SsoAssertion = InferEntity<typeof SsoAssertionEntity>;
