import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, json, oneOf, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { SsoCheck } from './sso-checks.ts';
import { SsoConfigurationEntity } from './sso-configuration.entity.ts';

/**
 * `login`, `test`: waits for the identity provider. `link`: the identity is proved but unknown, and the person has to show
 * by another sign-in which account is theirs. `confirm`: the identity provider began the login, and the person has to agree.
 * `prove`: waits for the identity provider of a replaced configuration, which shows the account of a `link`.
 */
export const SSO_PURPOSES = ['login', 'test', 'link', 'confirm', 'prove'] as const;
export type SsoPurpose = (typeof SSO_PURPOSES)[number];

/** What an identity provider said about a person, after all checks. */
export interface SsoClaims {
  issuer: string;
  subject: string;
  email: string;
  name: string | null;
  /** ISO 8601: when the person proved who they are to the identity provider; null if unknown. */
  authenticatedAt: string | null;
}

/** One step of a sign-in through SSO, bound to one browser. Used once, within ten minutes. */
export const SsoTransactionEntity = defineEntity({
  name: 'SsoTransaction',
  tableName: 'sso_transactions',
  policies: tenantPolicies({ people: true }),
  indexes: [{ properties: ['expiresAt'] }, { properties: ['configurationId'] }],
  checks: [{ name: 'sso_transactions_purpose', expression: oneOf('purpose', SSO_PURPOSES) }],
  properties: {
    /** Hash of the state, relay state or token that continues it. */
    tokenHash: p.blob().primary(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    configurationId: () =>
      p.manyToOne(SsoConfigurationEntity).mapToPk().fieldName('configuration_id').deleteRule('cascade'),
    configurationVersion: p.integer(),
    purpose: p.text().$type<SsoPurpose>(),
    /** Hash of the browser's cookie. */
    browserHash: p.blob(),
    /** Sealed: nonce and PKCE verifier, or id of the SAML request. Null once the identity is proved. */
    secrets: p.blob().strictNullable(),
    /** A path of this service. */
    redirectTo: p.text(),
    /** Whether the identity provider must have the person sign in again. */
    isFresh: p.boolean().default(false),
    /** `link`: the user whose account has the address; null if there is none. `test`: the user who tests. */
    userId: idColumn().strictNullable(),
    /** `link`, `confirm`. */
    claims: json(p.json().$type<SsoClaims | null>().strictNullable()),
    expiresAt: timestamp(),
    usedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

export type SsoTransaction = InferEntity<typeof SsoTransactionEntity>;

/** A used SAML assertion. The row is kept for as long as the assertion would be accepted. */
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

/**
 * A login or test through a configuration, shown to those who set it up. The last 20 of each configuration are kept for
 * seven days.
 */
export const SsoAttemptEntity = defineEntity({
  name: 'SsoAttempt',
  tableName: 'sso_attempts',
  policies: tenantPolicies({ people: true }),
  indexes: [{ properties: ['configurationId', 'id'] }, { properties: ['createdAt'] }],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    configurationId: () =>
      p.manyToOne(SsoConfigurationEntity).mapToPk().fieldName('configuration_id').deleteRule('cascade'),
    purpose: p.text().$type<SsoPurpose>(),
    succeeded: p.boolean(),
    /** In order. Values are redacted. */
    checks: json(p.json().$type<SsoCheck[]>()),
    createdAt: createdAt(),
  },
});

export type SsoAttempt = InferEntity<typeof SsoAttemptEntity>;
