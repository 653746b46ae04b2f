import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, primaryId, timestamp, updatedAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import type { EventType } from '../events/event-types.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** A receiver's address and what it wants to hear of. */
export const WebhookEndpointEntity = defineEntity({
  name: 'WebhookEndpoint',
  tableName: 'webhook_endpoints',
  policies: tenantPolicies(),
  indexes: [{ properties: ['environmentId', 'id'] }],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: () => p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').deleteRule('cascade'),
    url: p.text(),
    events: p.array().$type<EventType[]>(),
    description: p.text().strictNullable(),
    /** Empty: events of every inbox of the environment. */
    inboxIds: p.array().$type<string[]>().strictNullable(),
    /** The `whsec_` value, sealed (AES-256-GCM). */
    secret: p.blob().hidden(),
    /** The one before, sealed likewise; deliveries are signed with it, too, until it expires. Empty: none. */
    previousSecret: p.blob().strictNullable().hidden(),
    previousSecretExpiresAt: timestamp().strictNullable(),
    disabled: p.boolean().default(false),
    /** Who switched it off: the customer, the receiver by answering 410, or days of failures. Empty while enabled. */
    disabledReason: p.text().strictNullable(),
    /** The first failure since the last success; empty while attempts succeed. */
    failingSince: timestamp().strictNullable(),
    /** Failed attempts since the last success. */
    failuresInRow: p.integer().default(0),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
    deletedAt: timestamp().strictNullable(),
  },
});

export type WebhookEndpoint = InferEntity<typeof WebhookEndpointEntity>;
