import { defineEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, oneOf, primaryId, timestamp } from '../../platform/database/columns.ts';
import type { RowOf } from '../../platform/database/columns-of.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

export const SUSPENSION_REASONS = ['payment', 'abuse', 'support', 'policy'] as const;
export type SuspensionReason = (typeof SUSPENSION_REASONS)[number];

export const SUSPENSION_TARGETS = ['organization', 'environment', 'inbox'] as const;
export type SuspensionTargetType = (typeof SUSPENSION_TARGETS)[number];

/** Who suspends and reinstates: a staff member, or the service itself. */
export type SuspensionActorKind = 'staff' | 'system';

/**
 * Why an organization, environment or inbox is suspended. Its `status` is `suspended` while it has an open row. It has at
 * most one open row for each reason, and reinstatement for one reason leaves the others open.
 */
export const SuspensionEntity = defineEntity({
  name: 'Suspension',
  tableName: 'suspensions',
  policies: tenantPolicies({ staff: true }),
  checks: [
    { name: 'suspensions_reason', expression: oneOf('reason', SUSPENSION_REASONS) },
    { name: 'suspensions_target_type', expression: oneOf('target_type', SUSPENSION_TARGETS) },
  ],
  indexes: [
    { properties: ['organizationId', 'id'] },
    {
      name: 'suspensions_open_unique',
      expression: `create unique index "suspensions_open_unique" on "suspensions" ("target_id", "reason") where "lifted_at" is null`,
    },
    {
      name: 'suspensions_unsettled_index',
      expression: `create index "suspensions_unsettled_index" on "suspensions" ("changed_at") where "settled_at" is null`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    targetType: p.text().$type<SuspensionTargetType>(),
    targetId: idColumn(),
    reason: p.text().$type<SuspensionReason>(),
    /** Shown to the organization in its audit log. */
    note: p.text(),
    actorKind: p.text().$type<SuspensionActorKind>(),
    actorId: idColumn(),
    createdAt: createdAt(),
    /** This and the three fields below are null while the suspension is open. */
    liftedAt: timestamp().strictNullable(),
    liftedNote: p.text().strictNullable(),
    liftedByKind: p.text().$type<SuspensionActorKind>().strictNullable(),
    liftedById: idColumn().strictNullable(),
    /** When the suspension was opened or lifted. */
    changedAt: timestamp(),
    /** When the held work was rejected or released; null while a run still has to do that. */
    settledAt: timestamp().strictNullable(),
    /** When the reconciler last checked the run; null if it never had to. */
    reconciledAt: timestamp().strictNullable(),
  },
});

export type Suspension = RowOf<typeof SuspensionEntity>;
