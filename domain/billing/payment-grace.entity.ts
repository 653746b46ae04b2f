import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, oneOf, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** `waiting` → `suspended`; both → `recovered` (paid) or `ended` (the subscription has ended, or another one is paid). */
const GRACE_STATUSES = ['waiting', 'suspended', 'recovered', 'ended'] as const;
export type GraceStatus = (typeof GRACE_STATUSES)[number];

/** The time between a failed payment and the suspension. A subscription has at most one open grace. */
export const PaymentGraceEntity = defineEntity({
  name: 'PaymentGrace',
  tableName: 'payment_graces',
  policies: tenantPolicies({ staff: true }),
  checks: [{ name: 'payment_graces_status', expression: oneOf('status', GRACE_STATUSES) }],
  indexes: [
    { properties: ['organizationId', 'id'] },
    {
      name: 'payment_graces_open_unique',
      expression: `create unique index "payment_graces_open_unique" on "payment_graces" ("subscription_id") where "closed_at" is null`,
    },
    {
      name: 'payment_graces_next_step_index',
      expression: `create index "payment_graces_next_step_index" on "payment_graces" ("next_step_at") where "closed_at" is null`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    subscriptionId: idColumn(),
    /** Number of the grace within the subscription, part of the workflow id. */
    generation: p.integer(),
    status: p.text().$type<GraceStatus>().default('waiting'),
    startedAt: timestamp(),
    suspendAt: timestamp(),
    /** When the run has to act next; null once the grace is closed. */
    nextStepAt: timestamp().strictNullable(),
    remindersSent: p.integer().default(0),
    suspendedAt: timestamp().strictNullable(),
    closedAt: timestamp().strictNullable(),
    /** When the reconciler last checked the run. */
    reconciledAt: timestamp().strictNullable(),
  },
});

export type PaymentGrace = InferEntity<typeof PaymentGraceEntity>;
