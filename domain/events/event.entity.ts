import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { EventData, EventType } from './event-types.ts';

/** Something that happened, as receivers are told (specification, "Events"). Never changed. */
export const EventEntity = defineEntity({
  name: 'Event',
  tableName: 'events',
  policies: tenantPolicies(),
  indexes: [
    // Ranges of time: ids carry theirs.
    { properties: ['environmentId', 'id'] },
    { properties: ['environmentId', 'transactionId', 'id'] },
    // Rare types are what people look for.
    { properties: ['environmentId', 'type', 'transactionId', 'id'] },
    {
      name: 'events_inbox_index',
      expression: `create index "events_inbox_index" on "events" ("inbox_id", "transaction_id", "id") where "inbox_id" is not null`,
    },
    {
      name: 'events_organization_index',
      expression: `create index "events_organization_index" on "events" ("org_id", "transaction_id", "id") where "inbox_id" is null`,
    },
  ],
  triggers: [
    functionTrigger({ name: 'signal_event', table: 'events', event: 'insert', calls: 'signal_event' }),
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: () => p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').deleteRule('cascade'),
    /** Empty for events of the organization as a whole. */
    inboxId: idColumn().strictNullable(),
    type: p.text().$type<EventType>(),
    data: p.json().$type<EventData>(),
    /** Made up on request, for one endpoint; the feed leaves it out. */
    test: p.boolean().default(false),
    createdAt: createdAt(),
    /** The transaction that recorded it; with the id its place in the order of `event-feed.ts`. Set by PostgreSQL. */
    transactionId: p.string().columnType('xid8').defaultRaw('pg_current_xact_id()'),
  },
});

export type Event = InferEntity<typeof EventEntity>;
