import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, json, primaryId } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { SsoCheck } from './sso-checks.ts';
import { SsoConfigurationEntity } from './sso-configuration.entity.ts';
import type { SsoPurpose } from './sso-transaction.entity.ts';

/** A login or test through a configuration, for those who set it up. The last 20 of a configuration, for seven days. */
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
