import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import type { EventType } from '../events/event-types.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { WebhookEndpointEntity } from './endpoint.entity.ts';

export type BulkJobKind = 'replay' | 'cancel';
/** `stopped`: the endpoint was disabled or deleted, a cancellation superseded the job, or an operator ended it. */
export type BulkJobStatus = 'running' | 'completed' | 'stopped';

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
    endpointId: () => p.manyToOne(WebhookEndpointEntity).mapToPk().deleteRule('cascade'),
    kind: p.text().$type<BulkJobKind>(),
    status: p.text().$type<BulkJobStatus>().default('running'),
    detail: p.text().strictNullable(),
    /** Events recorded at or after this time; null for `cancel`. */
    since: timestamp().strictNullable(),
    /** Events (for `cancel`: deliveries) recorded before this time. */
    until: timestamp(),
    /** Null: the types the endpoint subscribes to. */
    eventTypes: p.array().$type<EventType[]>().strictNullable(),
    /** For `replay`: only deliveries that failed or were canceled. */
    onlyFailed: p.boolean().default(false),
    /** Id of the last event processed by a replay; null at the beginning. */
    position: idColumn().strictNullable(),
    /** Deliveries restarted or canceled so far. */
    deliveries: p.integer().default(0),
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    completedAt: timestamp().strictNullable(),
  },
});

export type BulkJob = InferEntity<typeof BulkJobEntity>;
