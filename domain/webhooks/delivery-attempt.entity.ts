import { defineEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import type { RowOf } from '../../platform/database/columns-of.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { WebhookDeliveryEntity } from './delivery.entity.ts';

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
    error: p.text().strictNullable(),
    /** What the event is about was deleted meanwhile: the response is not kept, because it may repeat the content. */
    redacted: p.boolean().default(false),
  },
});

export type DeliveryAttempt = RowOf<typeof DeliveryAttemptEntity>;
