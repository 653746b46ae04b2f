import { defineEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId, timestamp, updatedAt } from '../../platform/database/columns.ts';
import type { RowOf } from '../../platform/database/columns-of.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import type { EventType } from '../events/event-types.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** The URL of a receiver and the events it subscribes to. */
export const WebhookEndpointEntity = defineEntity({
  name: 'WebhookEndpoint',
  tableName: 'webhook_endpoints',
  policies: tenantPolicies({ lookup: true }),
  indexes: [
    { properties: ['environmentId', 'id'] },
    {
      name: 'webhook_endpoints_disabled_index',
      expression: `create index "webhook_endpoints_disabled_index" on "webhook_endpoints" ("id") where "disabled" and "deleted_at" is null`,
    },
    {
      name: 'webhook_endpoints_holding_index',
      expression: `create index "webhook_endpoints_holding_index" on "webhook_endpoints" ("holding_since") where "holding_since" is not null`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: () => p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').deleteRule('cascade'),
    url: p.text(),
    events: p.array().$type<EventType[]>(),
    description: p.text().strictNullable(),
    /** Null: events of every inbox of the environment. */
    inboxIds: p.array().$type<string[]>().strictNullable(),
    /** The `whsec_` value, sealed (AES-256-GCM). */
    secret: p.blob().hidden(),
    /** Sealed like `secret`. Deliveries are signed with both until this one expires. */
    previousSecret: p.blob().strictNullable().hidden(),
    previousSecretExpiresAt: timestamp().strictNullable(),
    disabled: p.boolean().default(false),
    /** Disabled through the API, by a 410 response, or after days of failures. Null while enabled. */
    disabledReason: p.text().strictNullable(),
    /** The first failure since the last success; null while attempts succeed. */
    failingSince: timestamp().strictNullable(),
    /** Failed attempts since the last success. */
    consecutiveFailures: p.integer().default(0),
    /**
     * New deliveries wait as `held` rows since this time: from the failure that made the endpoint failing, or its
     * enabling with a long backlog, until every earlier delivery is released. Null if they start immediately. While it
     * is set, a `probeEndpoint` run exists.
     */
    holdingSince: timestamp().strictNullable(),
    /** Incremented each time `holdingSince` is set; part of the probe's workflow id. */
    probeGeneration: p.integer().default(0),
    /** When the reconciler last checked the probe's run. */
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
    deletedAt: timestamp().strictNullable(),
  },
});

export type WebhookEndpoint = RowOf<typeof WebhookEndpointEntity>;

/**
 * A slot is the right to make one attempt at an endpoint. The rows are created with the endpoint's first attempt. A lease
 * lasts as long as an attempt can take, so the slot of a crashed worker becomes free without cleanup.
 */
export const WebhookSlotEntity = defineEntity({
  name: 'WebhookSlot',
  tableName: 'webhook_slots',
  policies: tenantPolicies(),
  properties: {
    endpointId: () =>
      p.manyToOne(WebhookEndpointEntity).mapToPk().fieldName('endpoint_id').primary().deleteRule('cascade'),
    slot: p.smallint().primary(),
    organizationId: idColumn().fieldName('org_id'),
    /** The slot is free once this is in the past. */
    leasedUntil: timestamp(),
    /** The delivery that leased the slot last. Only this delivery may release the slot. */
    deliveryId: idColumn().strictNullable(),
  },
});
