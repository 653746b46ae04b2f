import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { UsageCounter } from './counters.ts';

/** What an organization sets for itself: a cap below what it is allowed, and when it wants to be warned. */
export const OwnLimitEntity = defineEntity({
  name: 'OwnLimit',
  tableName: 'own_limits',
  policies: tenantPolicies({ lookup: true }),
  checks: [
    { name: 'own_limits_not_negative', expression: 'amount >= 0' },
    { name: 'own_limits_warning', expression: 'warning_percent >= 1 and warning_percent <= 99' },
  ],
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    counter: p.text().$type<UsageCounter>().primary(),
    /** Empty: no cap of its own. */
    amount: p.bigint('number').strictNullable(),
    /** Empty: at the usual share. */
    warningPercent: p.smallint().strictNullable(),
    updatedAt: timestamp(),
  },
});

export type OwnLimit = InferEntity<typeof OwnLimitEntity>;
