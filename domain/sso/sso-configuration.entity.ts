import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import {
  createdAt,
  idColumn,
  lazy,
  oneOf,
  primaryId,
  timestamp,
  updatedAt,
} from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import type { MemberRole } from '../identity/roles.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

export const SSO_TYPES = ['oidc', 'saml'] as const;
export type SsoType = (typeof SSO_TYPES)[number];
/** `tested`: a test login passed with the present settings. An organization has at most one active configuration. */
export const SSO_STATUSES = ['draft', 'tested', 'active', 'disabled'] as const;
export type SsoStatus = (typeof SSO_STATUSES)[number];
/** Roles that people who join by SSO may get. Never owner. */
export const SSO_ROLES = ['admin', 'developer', 'viewer'] as const satisfies readonly MemberRole[];
export type SsoRole = (typeof SSO_ROLES)[number];

/** How an organization's people sign in with its identity provider. */
export const SsoConfigurationEntity = defineEntity({
  name: 'SsoConfiguration',
  tableName: 'sso_configurations',
  policies: tenantPolicies({ lookup: true, people: true }),
  indexes: [{ properties: ['organizationId', 'id'] }],
  uniques: [
    {
      name: 'sso_configurations_active_unique',
      expression: `create unique index "sso_configurations_active_unique" on "sso_configurations" ("org_id") where "status" = 'active'`,
    },
    {
      name: 'sso_configurations_replaces_unique',
      expression: `create unique index "sso_configurations_replaces_unique" on "sso_configurations" ("replaces_id")`,
    },
  ],
  triggers: [
    functionTrigger({
      name: 'signal_sso_access',
      table: 'sso_configurations',
      event: 'update',
      when: 'old.status is distinct from new.status',
      calls: 'signal_access',
    }),
    functionTrigger({
      name: 'signal_sso_access_end',
      table: 'sso_configurations',
      event: 'delete',
      when: `old.status = 'active'`,
      calls: 'signal_access',
    }),
  ],
  checks: [
    { name: 'sso_configurations_type', expression: oneOf('type', SSO_TYPES) },
    { name: 'sso_configurations_status', expression: oneOf('status', SSO_STATUSES) },
    { name: 'sso_configurations_default_role', expression: oneOf('default_role', SSO_ROLES) },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    type: p.text().$type<SsoType>(),
    status: p.text().$type<SsoStatus>().default('draft'),
    name: p.text(),
    /** Incremented with every change of the settings. A login or test counts only for the version with which it began. */
    version: p.integer().default(1),
    /** The active configuration whose pending changes this row holds. Only the active configuration is shown. */
    replacesId: idColumn().strictNullable(),
    /** Names this service to the identity provider; null: the id of this row. */
    serviceProviderId: idColumn().strictNullable(),
    /** The `SsoProviderEntity` that knows its people. Null until the first activation. */
    providerId: idColumn().strictNullable(),
    /**
     * When a configuration of another identity provider replaced it. Since then it only links people to the other identity
     * provider.
     */
    replacedAt: timestamp().strictNullable(),
    /** Domains of the addresses that may sign in, in lower case. Each login requires that the domain is verified. */
    domains: p.array(),
    defaultRole: p.text().$type<SsoRole>(),
    /** OIDC issuer, or entity id of the SAML identity provider; null while its metadata has not been read. */
    issuer: p.text().strictNullable(),
    clientId: p.text().strictNullable(),
    /** Sealed. */
    clientSecret: p.blob().strictNullable(),
    idpMetadataUrl: p.text().strictNullable(),
    idpMetadataXml: lazy(p.text().strictNullable()),
    allowIdpInitiated: p.boolean().default(false),
    /** When keys or metadata were last read again on demand. Limits how often. */
    keysReadAt: timestamp().strictNullable(),
    /** When the metadata was last read from its URL. */
    metadataFetchedAt: timestamp().strictNullable(),
    /** When the metadata is read from its URL again; null without a URL. */
    metadataDueAt: timestamp().strictNullable(),
    /** When the last certificate of the identity provider expires. */
    certificateExpiresAt: timestamp().strictNullable(),
    /** The owners were warned this many days before the expiry; null: not yet. */
    certificateWarnedDays: p.smallint().strictNullable(),
    testedAt: timestamp().strictNullable(),
    activatedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type SsoConfiguration = InferEntity<typeof SsoConfigurationEntity>;
