import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, oneOf, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { LIMITED_RESOURCES, type LimitedResource, type UsageCounter } from './counters.ts';
import { LIMIT_KINDS, type LimitKind } from './tiers.ts';

/** A limit that staff have set for one organization in place of its tier's limit. */
export const LimitOverrideEntity = defineEntity({
  name: 'LimitOverride',
  tableName: 'limit_overrides',
  policies: tenantPolicies({ lookup: true, staff: true }),
  // Operators insert rows by hand.
  checks: [
    { name: 'limit_overrides_not_negative', expression: 'amount >= 0' },
    { name: 'limit_overrides_resource', expression: oneOf('resource', LIMITED_RESOURCES) },
    { name: 'limit_overrides_kind', expression: oneOf('kind', LIMIT_KINDS) },
  ],
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    resource: p.text().$type<LimitedResource>().primary(),
    /** Null: unlimited. */
    amount: p.bigint('number').strictNullable(),
    kind: p.text().$type<LimitKind>(),
    /** When the tier's limit applies again; null: when the row is deleted. */
    expiresAt: timestamp().strictNullable(),
    reason: p.text(),
    createdBy: p.text(),
    createdAt: createdAt(),
  },
});

export type LimitOverride = InferEntity<typeof LimitOverrideEntity>;

/** An organization's settings for one counter: a custom limit, at most the allowed one, and a warning threshold. */
export const CustomLimitEntity = defineEntity({
  name: 'CustomLimit',
  tableName: 'custom_limits',
  policies: tenantPolicies({ lookup: true, staff: true }),
  checks: [
    { name: 'custom_limits_not_negative', expression: 'amount >= 0' },
    { name: 'custom_limits_warning', expression: 'warning_percent >= 1 and warning_percent <= 99' },
  ],
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    counter: p.text().$type<UsageCounter>().primary(),
    /** Null: no custom limit. */
    amount: p.bigint('number').strictNullable(),
    /** Null: the default threshold. */
    warningPercent: p.smallint().strictNullable(),
    updatedAt: timestamp(),
  },
});

export type CustomLimit = InferEntity<typeof CustomLimitEntity>;
