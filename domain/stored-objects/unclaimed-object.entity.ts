import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';

/**
 * A stored object that may have no owner. The entry is inserted before the bytes are stored, deleted when a row refers
 * to them, and inserted again when such a row is deleted. `sweepObjects` deletes due objects without a row. Every
 * object therefore has a row or an entry here, no matter when a process crashes.
 */
export const UnclaimedObjectEntity = defineEntity({
  name: 'UnclaimedObject',
  tableName: 'unclaimed_objects',
  policies: tenantPolicies(),
  indexes: [{ properties: ['dueAt'] }, { properties: ['organizationId', 'dueAt'] }],
  properties: {
    storageKey: p.text().primary(),
    /** Not a foreign key: the objects outlive the organization's row. Null if the owner is unknown. */
    organizationId: idColumn().fieldName('org_id').strictNullable(),
    dueAt: timestamp(),
    /** The object is being deleted, so no row may refer to it any longer. */
    deleting: p.boolean().default(false),
  },
});

export type UnclaimedObject = InferEntity<typeof UnclaimedObjectEntity>;
