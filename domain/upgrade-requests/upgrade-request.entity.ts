import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, oneOf, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { TIERS, type Tier } from '../organizations/tier.ts';

export const UPGRADE_REQUEST_STATUSES = ['open', 'approved', 'rejected'] as const;
export type UpgradeRequestStatus = (typeof UPGRADE_REQUEST_STATUSES)[number];

/** An organization's request for another tier, which staff decide. An organization has at most one open request. */
export const UpgradeRequestEntity = defineEntity({
  name: 'UpgradeRequest',
  tableName: 'upgrade_requests',
  policies: tenantPolicies({ staff: true }),
  checks: [
    { name: 'upgrade_requests_tier', expression: oneOf('tier', TIERS) },
    { name: 'upgrade_requests_status', expression: oneOf('status', UPGRADE_REQUEST_STATUSES) },
  ],
  indexes: [
    { properties: ['organizationId', 'id'] },
    { properties: ['status', 'id'] },
    {
      name: 'upgrade_requests_open_unique',
      expression: `create unique index "upgrade_requests_open_unique" on "upgrade_requests" ("org_id") where "status" = 'open'`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    tier: p.text().$type<Tier>(),
    /** The organization's tier at the time of the request. */
    currentTier: p.text().$type<Tier>(),
    note: p.text(),
    status: p.text().$type<UpgradeRequestStatus>().default('open'),
    requestedByKind: p.text().$type<'user' | 'api_key'>(),
    requestedById: idColumn(),
    createdAt: createdAt(),
    /** Staff member. This and the two fields below are null while the request is open. */
    decidedBy: idColumn().strictNullable(),
    decidedAt: timestamp().strictNullable(),
    decisionNote: p.text().strictNullable(),
  },
});

export type UpgradeRequest = InferEntity<typeof UpgradeRequestEntity>;
