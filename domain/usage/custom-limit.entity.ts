import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { UsageCounter } from './counters.ts';

/** Settings of an organization for one counter: a limit of its own, at most the allowed one, and a warning threshold. */
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
