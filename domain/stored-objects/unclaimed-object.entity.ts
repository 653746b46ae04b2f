import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';

/**
 * An object of storage that may have nobody: written down before bytes are put, taken out when a row refers to them,
 * written down again when such a row goes. What is due and has no row is deleted from storage (`sweepObjects`). Bytes
 * are therefore never without either a row or an entry here, whenever a process dies.
 */
export const UnclaimedObjectEntity = defineEntity({
  name: 'UnclaimedObject',
  tableName: 'unclaimed_objects',
  policies: tenantPolicies(),
  indexes: [{ properties: ['dueAt'] }],
  properties: {
    storageKey: p.text().primary(),
    /** No reference: the objects of an organization outlive its row. Empty where nobody knows whose it was. */
    organizationId: idColumn().fieldName('org_id').strictNullable(),
    dueAt: timestamp(),
    /** Its deletion has begun: nobody may refer to it any more. */
    deleting: p.boolean().default(false),
  },
});

export type UnclaimedObject = InferEntity<typeof UnclaimedObjectEntity>;
