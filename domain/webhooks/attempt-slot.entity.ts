import { defineEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { WebhookEndpointEntity } from './endpoint.entity.ts';

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
    /** The delivery that leased it last; only that one releases it. */
    deliveryId: idColumn().strictNullable(),
  },
});
