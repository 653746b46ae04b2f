import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, oneOf, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { LIMITED, type Limited } from './counters.ts';
import { LIMIT_KINDS, type LimitKind } from './tiers.ts';

/** What an administrator allows one organization in place of its tier's limit. */
export const LimitOverrideEntity = defineEntity({
  name: 'LimitOverride',
  tableName: 'limit_overrides',
  policies: tenantPolicies({ lookup: true }),
  // Operators write rows by hand.
  checks: [
    { name: 'limit_overrides_not_negative', expression: 'amount >= 0' },
    { name: 'limit_overrides_limited', expression: oneOf('limited', LIMITED) },
    { name: 'limit_overrides_kind', expression: oneOf('kind', LIMIT_KINDS) },
  ],
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    limited: p.text().$type<Limited>().primary(),
    /** Empty: unlimited. */
    amount: p.bigint('number').strictNullable(),
    kind: p.text().$type<LimitKind>(),
    /** From then on the tier's limit holds again; empty: until it is removed. */
    expiresAt: timestamp().strictNullable(),
    reason: p.text(),
    createdBy: p.text(),
    createdAt: createdAt(),
  },
});

export type LimitOverride = InferEntity<typeof LimitOverrideEntity>;
