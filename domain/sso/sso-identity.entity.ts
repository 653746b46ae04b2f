import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, oneOf, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { UserEntity } from '../people/user.entity.ts';
import { SSO_TYPES, type SsoType } from './sso-configuration.entity.ts';

/**
 * An identity provider that knows people of an organization. Configurations are replaced; people stay known by the subjects
 * of the identity provider.
 */
export const SsoProviderEntity = defineEntity({
  name: 'SsoProvider',
  tableName: 'sso_providers',
  policies: tenantPolicies({ people: true }),
  indexes: [{ properties: ['organizationId', 'issuer'] }],
  checks: [{ name: 'sso_providers_type', expression: oneOf('type', SSO_TYPES) }],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    type: p.text().$type<SsoType>(),
    /** OIDC: proven by discovery. SAML: an entity id, which anyone may state. */
    issuer: p.text(),
    /** SAML: SHA-256 of the certificates in its last metadata, in hexadecimal. */
    certificates: p.array(),
    createdAt: createdAt(),
  },
});

export type SsoProvider = InferEntity<typeof SsoProviderEntity>;

/**
 * A person at an identity provider, and their account. The address does not identify the person, because it may change
 * hands.
 */
export const SsoIdentityEntity = defineEntity({
  name: 'SsoIdentity',
  tableName: 'sso_identities',
  policies: tenantPolicies({ people: true }),
  indexes: [{ properties: ['userId'] }],
  properties: {
    providerId: () =>
      p.manyToOne(SsoProviderEntity).mapToPk().fieldName('provider_id').primary().deleteRule('cascade'),
    subject: p.text().primary(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    userId: () => p.manyToOne(UserEntity).mapToPk().fieldName('user_id').deleteRule('cascade'),
    /** The address that the identity provider last stated. */
    email: p.text(),
    lastLoginAt: timestamp(),
    createdAt: createdAt(),
  },
});

export type SsoIdentity = InferEntity<typeof SsoIdentityEntity>;
