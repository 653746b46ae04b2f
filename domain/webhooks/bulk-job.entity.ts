import { defineEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, json, primaryId, timestamp } from '../../platform/database/columns.ts';
import type { RowOf } from '../../platform/database/columns-of.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import type { EventType } from '../events/event-types.ts';
import type { Actor } from '../identity/scope.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { HoldReason } from './delivery.entity.ts';
import { WebhookEndpointEntity } from './endpoint.entity.ts';

export type BulkJobKind = 'replay' | 'cancel';
/**
 * `stopped`: the endpoint was disabled or deleted, a cancellation superseded the job, its requester lost the
 * permission, or an operator ended it.
 */
export type BulkJobStatus = 'running' | 'completed' | 'stopped';

/**
 * Why a replay skips a delivery. `in_flight`: an attempt is in progress. `due`: the delivery is about to be attempted.
 * `purged`: the delivery announced a message that was deleted. The other reasons are those of held deliveries.
 */
export const SKIP_REASONS = [
  'in_flight',
  'due',
  'purged',
  'endpoint_disabled',
  'endpoint_failing',
  'usage_limit',
  'suspension',
  'organization_deleted',
  'switched_off',
] as const satisfies readonly ('in_flight' | 'due' | 'purged' | 'endpoint_disabled' | HoldReason)[];
export type SkipReason = (typeof SKIP_REASONS)[number];

/** A job that replays or cancels many deliveries of one endpoint, batch by batch. */
export const BulkJobEntity = defineEntity({
  name: 'WebhookBulkJob',
  tableName: 'webhook_bulk_jobs',
  policies: tenantPolicies({ lookup: true }),
  indexes: [
    // One running job per endpoint: two replays would restart the same deliveries.
    {
      name: 'webhook_bulk_jobs_running_unique',
      expression: `create unique index "webhook_bulk_jobs_running_unique" on "webhook_bulk_jobs" ("endpoint_id") where "status" = 'running'`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: idColumn().fieldName('env_id'),
    endpointId: () =>
      p.manyToOne(WebhookEndpointEntity).mapToPk().fieldName('endpoint_id').deleteRule('cascade'),
    kind: p.text().$type<BulkJobKind>(),
    /** Who requested the job; null for a job from before this was recorded. */
    requestedByKind: p.text().$type<Actor['kind']>().strictNullable(),
    requestedById: idColumn().strictNullable(),
    status: p.text().$type<BulkJobStatus>().default('running'),
    detail: p.text().strictNullable(),
    /** Events recorded at or after this time; null for `cancel`. */
    since: timestamp().strictNullable(),
    /** Events (for `cancel`: deliveries) recorded before this time. */
    until: timestamp(),
    /** Null: the types the endpoint subscribes to. */
    eventTypes: p.array().$type<EventType[]>().strictNullable(),
    /** For `replay`: only deliveries that failed or were canceled, including those that wait for their next attempt. */
    onlyFailed: p.boolean().default(false),
    /** Id of the last event, or with `onlyFailed` delivery, processed by a replay; null at the beginning. */
    position: idColumn().strictNullable(),
    /** Deliveries created, restarted, expedited or canceled so far. */
    deliveries: p.integer().default(0),
    /** Number of these deliveries that waited for their next attempt and became due. */
    expedited: p.integer().default(0),
    /** Number of deliveries that a replay skipped, by reason. */
    skipped: json(p.json().$type<Partial<Record<SkipReason, number>>>().defaultRaw(`'{}'`)),
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    completedAt: timestamp().strictNullable(),
  },
});

export type BulkJob = RowOf<typeof BulkJobEntity>;
