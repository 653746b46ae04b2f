import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { EventData, EventType } from './event-types.ts';

/** Something that happened, as receivers are told (specification, "Events"). Never changed. */
export const EventEntity = defineEntity({
  name: 'Event',
  tableName: 'events',
  policies: tenantPolicies(),
  indexes: [{ properties: ['environmentId', 'id'] }],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: () => p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').deleteRule('cascade'),
    /** Empty for events of the organization as a whole. */
    inboxId: idColumn().strictNullable(),
    type: p.text().$type<EventType>(),
    data: p.json().$type<EventData>(),
    createdAt: createdAt(),
  },
});

export type Event = InferEntity<typeof EventEntity>;
