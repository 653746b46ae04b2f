import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, json, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { LimitedResource, UsageCounter } from './counters.ts';

/**
 * The value of a counter, without the deltas that are not applied yet (`UsageDeltaEntity`). One row per month;
 * `storage_bytes`, a gauge, has a single row with the period 1970-01-01.
 */
export const UsageCounterEntity = defineEntity({
  name: 'UsageCounter',
  tableName: 'usage_counters',
  policies: tenantPolicies({ lookup: true, staff: true }),
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    counter: p.text().$type<UsageCounter>().primary(),
    periodStart: timestamp().primary(),
    amount: p.bigint('number'),
  },
});

/**
 * A change of a counter that is not applied to it yet. Writers only insert rows, so they never wait for each other; readers
 * of a counter add its deltas. There is no foreign key, because the deletion of an organization writes deltas after its row
 * is gone.
 */
export const UsageDeltaEntity = defineEntity({
  name: 'UsageDelta',
  tableName: 'usage_deltas',
  policies: tenantPolicies({ lookup: true, staff: true }),
  indexes: [{ properties: ['organizationId', 'counter'] }],
  properties: {
    id: p.bigint('number').primary().autoincrement(),
    organizationId: idColumn().fieldName('org_id'),
    counter: p.text().$type<UsageCounter>(),
    /** When it happened; determines the month. */
    at: timestamp(),
    amount: p.bigint('number'),
  },
});

/** How much a counter changed within an hour (UTC). Source of the ledger's hourly sums and of the daily history. */
export const UsageHourEntity = defineEntity({
  name: 'UsageHour',
  tableName: 'usage_hours',
  policies: tenantPolicies({ staff: true }),
  indexes: [{ properties: ['organizationId', 'hour'] }, { properties: ['hour'] }],
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    counter: p.text().$type<UsageCounter>().primary(),
    hour: timestamp().primary(),
    amount: p.bigint('number'),
  },
});

/** Kinds of ledger entries, besides the hourly sums (`UsageHourEntity`). */
export const USAGE_EVENT_KINDS = [
  'threshold_crossed',
  'tier_changed',
  'override_set',
  'override_removed',
  'own_limit_changed',
  'period_closed',
] as const;
export type UsageEventKind = (typeof USAGE_EVENT_KINDS)[number];

/** The usage ledger: changes of counters and limits. Rows are never updated. */
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
