import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { json, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { LimitedResource } from './counters.ts';

/** Kinds of ledger entries, besides the hourly sums (`usage-hour.entity.ts`). */
export const USAGE_EVENT_KINDS = [
  'threshold_crossed',
  'tier_changed',
  'override_set',
  'override_removed',
  'own_limit_changed',
  'period_closed',
] as const;
export type UsageEventKind = (typeof USAGE_EVENT_KINDS)[number];

/** The usage ledger: what changed counters and limits. Rows are never updated. */
export const UsageEventEntity = defineEntity({
  name: 'UsageEvent',
  tableName: 'usage_events',
  policies: tenantPolicies({ staff: true }),
  indexes: [
    { properties: ['organizationId', 'at', 'id'] },
    { properties: ['at'] },
    {
      name: 'usage_events_period_unique',
      expression: `create unique index "usage_events_period_unique" on "usage_events" ("org_id", ("data" ->> 'period_start')) where "kind" = 'period_closed'`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    kind: p.text().$type<UsageEventKind>(),
    /** Null if the entry concerns all counters. */
    counter: p.text().$type<LimitedResource>().strictNullable(),
    data: json(p.json().$type<Record<string, unknown>>()),
    /** The API key or administrator that made the change; `system` for automatic entries. */
    actor: p.text(),
    at: timestamp(),
  },
});

export type UsageEvent = InferEntity<typeof UsageEventEntity>;
