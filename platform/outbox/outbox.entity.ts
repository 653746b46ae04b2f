import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, json, timestamp } from '../database/columns.ts';
import { tenantPolicies } from '../database/policies.ts';
import type { OutboxCommand } from './outbox-command.ts';

/** A workflow start or signal that belongs to a committed change. Deleted once Temporal has accepted it. */
export const OutboxEntity = defineEntity({
  name: 'Outbox',
  tableName: 'outbox',
  policies: tenantPolicies({ lookup: true, people: true, staff: true }),
  indexes: [
    {
      name: 'outbox_due_index',
      expression: 'create index "outbox_due_index" on "outbox" ("available_at") where "dead_at" is null',
    },
    {
      name: 'outbox_turn_index',
      expression:
        'create index "outbox_turn_index" on "outbox" ("org_id", "priority", "available_at") where "dead_at" is null',
    },
    {
      name: 'outbox_dead_index',
      expression: 'create index "outbox_dead_index" on "outbox" ("dead_at") where "dead_at" is not null',
    },
  ],
  properties: {
    id: p.bigint('number').primary().autoincrement(),
    organizationId: idColumn().fieldName('org_id'),
    command: json(p.json().$type<OutboxCommand>()),
    /** Of the run to start; null for a signal. */
    taskQueue: p.text().strictNullable(),
    /** A smaller number is dispatched first among the organization's rows. */
    priority: p.smallint(),
    /** The sweep ignores the row until this time, because the process that committed it dispatches first. */
    availableAt: timestamp(),
    attempts: p.integer().default(0),
    lastError: p.text().strictNullable(),
    /** Set after the last attempt; only an operator clears it. */
    deadAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

export type OutboxRow = InferEntity<typeof OutboxEntity>;
