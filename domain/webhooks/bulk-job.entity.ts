import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import type { EventType } from '../events/event-types.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { WebhookEndpointEntity } from './endpoint.entity.ts';

export type BulkJobKind = 'replay' | 'cancel';
/** `stopped`: what it was to do became impossible (`detail` says why), or somebody asked for the opposite. */
export type BulkJobStatus = 'running' | 'completed' | 'stopped';

/** Many deliveries of one endpoint that are started anew, or given up, a batch at a time. */
export const BulkJobEntity = defineEntity({
  name: 'WebhookBulkJob',
  tableName: 'webhook_bulk_jobs',
  policies: tenantPolicies(),
  indexes: [
    // One at a time: two replays would start the same deliveries.
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
    /** Events recorded at or after this time; empty of `cancel`. */
    since: timestamp().strictNullable(),
    /** Events (of `cancel`: deliveries) recorded before this time. */
    until: timestamp(),
    /** Only of these types; empty: whatever the endpoint hears of. */
    eventTypes: p.array().$type<EventType[]>().strictNullable(),
    /** Of `replay`: only what did not arrive. */
    onlyFailed: p.boolean().default(false),
    /** The last event (of `cancel`: delivery) looked at, in order of id; empty at the beginning. */
    position: idColumn().strictNullable(),
    /** Deliveries started, or given up, so far. */
    deliveries: p.integer().default(0),
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    completedAt: timestamp().strictNullable(),
  },
});

export type BulkJob = InferEntity<typeof BulkJobEntity>;
