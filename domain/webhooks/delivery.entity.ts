import { defineEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, json, primaryId, timestamp } from '../../platform/database/columns.ts';
import type { RowOf } from '../../platform/database/columns-of.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { EventEntity } from '../events/event.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { WebhookEndpointEntity } from './endpoint.entity.ts';

/**
 * `held`: has no run and waits until the endpoint is enabled or answers again, the usage limit allows it, a suspension
 * ends, the organization is recovered, or staff switch deliveries on again (`heldFor`).
 * `blocked`: the egress policy does not allow the URL.
 */
export const DELIVERY_STATUSES = [
  'pending',
  'delivered',
  'exhausted',
  'held',
  'canceled',
  'blocked',
] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];
/**
 * `suspension`: until the organization, environment and inbox of the event are reinstated. `organization_deleted`: until the
 * closed organization is recovered. `switched_off`: until staff switch webhook deliveries on again.
 */
export type HoldReason =
  | 'usage_limit'
  | 'endpoint_failing'
  | 'suspension'
  | 'organization_deleted'
  | 'switched_off';

/** The delivery of one event to one endpoint. */
export const WebhookDeliveryEntity = defineEntity({
  name: 'WebhookDelivery',
  tableName: 'webhook_deliveries',
  policies: tenantPolicies({ lookup: true }),
  indexes: [
    { properties: ['endpointId', 'id'] },
    { properties: ['endpointId', 'status', 'id'] },
    { properties: ['eventId', 'endpointId'] },
    {
      name: 'webhook_deliveries_pending_index',
      expression: `create index "webhook_deliveries_pending_index" on "webhook_deliveries" ("next_attempt_at") where "status" = 'pending'`,
    },
    {
      name: 'webhook_deliveries_over_limit_index',
      expression: `create index "webhook_deliveries_over_limit_index" on "webhook_deliveries" ("org_id", "id") where "status" = 'held' and "held_for" = 'usage_limit'`,
    },
    {
      name: 'webhook_deliveries_suspended_index',
      expression: `create index "webhook_deliveries_suspended_index" on "webhook_deliveries" ("org_id", "id") where "status" = 'held' and "held_for" = 'suspension'`,
    },
    {
      name: 'webhook_deliveries_held_index',
      expression: `create index "webhook_deliveries_held_index" on "webhook_deliveries" ("held_for", "created_at") where "status" = 'held'`,
    },
    {
      name: 'webhook_deliveries_backlog_index',
      expression: `create index "webhook_deliveries_backlog_index" on "webhook_deliveries" ("endpoint_id", "id") where "status" = 'held' and ("held_for" is null or "held_for" = 'endpoint_failing')`,
    },
    {
      name: 'webhook_deliveries_requested_index',
      expression: `create index "webhook_deliveries_requested_index" on "webhook_deliveries" ("endpoint_id", "next_attempt_at") where "status" = 'held' and "next_attempt_at" is not null`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    endpointId: () =>
      p.manyToOne(WebhookEndpointEntity).mapToPk().fieldName('endpoint_id').deleteRule('cascade'),
    eventId: () => p.manyToOne(EventEntity).mapToPk().fieldName('event_id').deleteRule('cascade'),
    status: p.text().$type<DeliveryStatus>(),
    /** Why the delivery is held; null if the endpoint is disabled or the delivery is not held. */
    heldFor: p.text().$type<HoldReason>().strictNullable(),
    /** Number of all attempts, including those before a restart. */
    attempts: p.integer().default(0),
    /**
     * Attempts that do not count against the schedule: those before the last restart, and those of a probe while the
     * delivery was held.
     */
    priorAttempts: p.integer().default(0),
    /** Incremented each time a settled delivery is restarted; part of the workflow id from 2 on. */
    generation: p.integer().default(1),
    /** For a held delivery: when a caller requested an attempt that the probe has not made yet. */
    nextAttemptAt: timestamp().strictNullable(),
    /** Null until the receiver has responded. */
    lastStatusCode: p.integer().strictNullable(),
    lastError: p.text().strictNullable(),
    /** When the reconciler last checked the run; null if the run has never been overdue. */
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    completedAt: timestamp().strictNullable(),
  },
});

export type WebhookDelivery = RowOf<typeof WebhookDeliveryEntity>;

/** Most headers of one response that are kept, and most characters of a name and of a value. */
export const MAX_RESPONSE_HEADERS = 30;
export const MAX_HEADER_NAME_LENGTH = 64;
export const MAX_HEADER_VALUE_LENGTH = 256;

/** One POST to a receiver. Without `finishedAt` it is in progress or was interrupted by a worker crash. */
export const DeliveryAttemptEntity = defineEntity({
  name: 'DeliveryAttempt',
  tableName: 'webhook_delivery_attempts',
  policies: tenantPolicies(),
  properties: {
    deliveryId: () =>
      p.manyToOne(WebhookDeliveryEntity).mapToPk().fieldName('delivery_id').primary().deleteRule('cascade'),
    number: p.integer().primary(),
    organizationId: idColumn().fieldName('org_id'),
    startedAt: timestamp(),
    finishedAt: timestamp().strictNullable(),
    durationMs: p.integer().strictNullable(),
    statusCode: p.integer().strictNullable(),
    /** First 4 KiB of the response body. */
    responseBody: p.text().strictNullable(),
    /** Of the response, up to {@link MAX_RESPONSE_HEADERS}. Null without a response, and for attempts from before this was kept. */
    responseHeaders: json(p.json().$type<Record<string, string>>().strictNullable()),
    error: p.text().strictNullable(),
    /** The subject of the event was deleted in the meantime: the response is not kept, because it may repeat the content. */
    redacted: p.boolean().default(false),
  },
});

export type DeliveryAttempt = RowOf<typeof DeliveryAttemptEntity>;
