import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, lazy, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** A staff member's temporary access to an organization, which they see as its people do. */
export const ImpersonationEntity = defineEntity({
  name: 'Impersonation',
  tableName: 'impersonations',
  policies: tenantPolicies({ lookup: true, staff: true }),
  indexes: [
    { properties: ['organizationId', 'id'] },
    { properties: ['staffId', 'id'] },
    {
      name: 'impersonations_unreported_index',
      expression: `create index "impersonations_unreported_index" on "impersonations" ("id") where "reported_at" is null`,
    },
  ],
  uniques: [{ properties: ['tokenHash'] }],
  triggers: [
    functionTrigger({
      name: 'signal_impersonations_access',
      table: 'impersonations',
      event: 'update',
      when: 'old.ended_at is distinct from new.ended_at',
      calls: 'signal_access',
    }),
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** User id of the staff member. */
    staffId: idColumn(),
    /** The session that began the impersonation, which ends with that session. */
    staffSessionId: idColumn(),
    /** Staff cannot read it. */
    tokenHash: lazy(p.blob()),
    /** Whether it may make changes that are not forbidden to every impersonation. Requires the role `admin` throughout. */
    allowsWrite: p.boolean(),
    reason: p.text(),
    ip: p.text(),
    requestId: p.text(),
    expiresAt: timestamp(),
    /** When it was ended early; otherwise null. */
    endedAt: timestamp().strictNullable(),
    /** When its end was recorded in both logs, with its calls; null before. */
    reportedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

export type Impersonation = InferEntity<typeof ImpersonationEntity>;

/** An operation that an impersonation called, and its resource. The organization sees both in its audit log. */
export const ImpersonatedOperationEntity = defineEntity({
  name: 'ImpersonatedOperation',
  tableName: 'impersonated_operations',
  policies: tenantPolicies({ staff: true }),
  indexes: [{ properties: ['organizationId'] }],
  properties: {
    impersonationId: () =>
      p
        .manyToOne(ImpersonationEntity)
        .mapToPk()
        .fieldName('impersonation_id')
        .primary()
        .deleteRule('cascade'),
    /** Operation id of the API or of a page, such as `messages.get`. */
    operation: p.text().primary(),
    /** The id in the path; empty without an id, and beyond the number of resources that are kept. */
    resourceId: idColumn().primary(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    isChange: p.boolean(),
    calls: p.integer(),
    /** Time of the first call. */
    createdAt: createdAt(),
  },
});
