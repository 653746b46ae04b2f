import { defineEntity, type Opt, p } from '@mikro-orm/core';
import { computed, createdAt, idColumn, json, lazy, primaryId } from '../../platform/database/columns.ts';
import type { RowOf } from '../../platform/database/columns-of.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { EventData, EventType } from './event-types.ts';

/**
 * A recorded event (specification, section "Events"). It changes only when its subject is deleted: see
 * `redact-events.ts`.
 */
export const EventEntity = defineEntity({
  name: 'Event',
  tableName: 'events',
  policies: tenantPolicies({ lookup: true }),
  indexes: [
    // For time ranges: an id contains its creation time.
    { properties: ['environmentId', 'id'] },
    { properties: ['environmentId', 'transactionId', 'id'] },
    // For queries by type, usually a rare one.
    { properties: ['environmentId', 'type', 'transactionId', 'id'] },
    {
      name: 'events_inbox_index',
      expression: `create index "events_inbox_index" on "events" ("inbox_id", "transaction_id", "id") where "inbox_id" is not null`,
    },
    {
      name: 'events_message_index',
      expression: `create index "events_message_index" on "events" ("message_id", "transaction_id", "id") where "message_id" is not null`,
    },
    {
      name: 'events_about_index',
      expression: `create index "events_about_index" on "events" ("about_id") where "about_id" is not null`,
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
    /** Null for organization-wide events. */
    inboxId: idColumn().strictNullable(),
    type: p.text().$type<EventType>(),
    data: json(p.json().$type<EventData>()),
    /**
     * Size of `data` as text. A column, because otherwise PostgreSQL would have to read and convert each event to measure
     * it.
     */
    dataBytes: lazy(
      computed(p.integer().$type<Opt<number>>().generated(`(octet_length((data)::text)) stored`)),
    ),
    /** The message that the event is about. A column, because row-level security keeps an index on `data` from being used. */
    messageId: idColumn().strictNullable().generated(`(data ->> 'message_id'::text) stored`),
    /**
     * The message or draft that the event is about if `data` does not name a message: the draft of `draft.*`, and the
     * message or draft that `message.rejected` refused, if it exists.
     */
    aboutId: idColumn().strictNullable(),
    /** The subject of the event was deleted, together with the content of `data`. */
    redacted: p.boolean().default(false),
    /** A test event for one endpoint; the feed excludes it. */
    test: p.boolean().default(false),
    createdAt: createdAt(),
    /** The transaction that recorded it. With the id it defines the order of the feed (`event-feed.ts`). Set by PostgreSQL. */
    transactionId: p.string().columnType('xid8').defaultRaw('pg_current_xact_id()'),
  },
});

export type Event = RowOf<typeof EventEntity>;
