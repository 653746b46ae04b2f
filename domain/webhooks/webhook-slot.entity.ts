import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { WebhookEndpointEntity } from './endpoint.entity.ts';

/**
 * The right to make one attempt at an endpoint at a time. An endpoint's rows are made with its first attempt, and one
 * is leased for as long as an attempt can last: what a dead worker held is free again by itself.
 */
export const WebhookSlotEntity = defineEntity({
  name: 'WebhookSlot',
  tableName: 'webhook_slots',
  policies: tenantPolicies(),
  properties: {
    endpointId: () => p.manyToOne(WebhookEndpointEntity).mapToPk().primary().deleteRule('cascade'),
    slot: p.smallint().primary(),
    organizationId: idColumn().fieldName('org_id'),
    /** In the past: free. */
    leasedUntil: timestamp(),
    /** Who leased it last; only that delivery gives it back. */
    deliveryId: idColumn().strictNullable(),
  },
});

export type WebhookSlot = InferEntity<typeof WebhookSlotEntity>;
