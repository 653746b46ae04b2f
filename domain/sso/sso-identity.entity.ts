import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { UserEntity } from '../people/user.entity.ts';
import { SsoConfigurationEntity } from './sso-configuration.entity.ts';

/** A person at an identity provider, and their account. The address is no key: it may change hands. */
export const SsoIdentityEntity = defineEntity({
  name: 'SsoIdentity',
  tableName: 'sso_identities',
  policies: tenantPolicies({ people: true }),
  indexes: [{ properties: ['userId'] }],
  properties: {
    configurationId: () => p.manyToOne(SsoConfigurationEntity).mapToPk().primary().deleteRule('cascade'),
    issuer: p.text().primary(),
    subject: p.text().primary(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    userId: () => p.manyToOne(UserEntity).mapToPk().deleteRule('cascade'),
    /** As the identity provider last stated it. */
    email: p.text(),
    lastLoginAt: timestamp(),
    createdAt: createdAt(),
  },
});

export type SsoIdentity = InferEntity<typeof SsoIdentityEntity>;
