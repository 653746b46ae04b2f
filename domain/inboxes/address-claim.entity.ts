import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';

/**
 * The inbox that holds an address, across all tenants. Written only through the function `claim_address`, which sees every
 * tenant's rows. A released address stays reserved for its organization for 90 days.
 */
export const AddressClaimEntity = defineEntity({
  name: 'AddressClaim',
  tableName: 'address_claims',
  policies: tenantPolicies({ lookup: true }),
  indexes: [
    { properties: ['organizationId'] },
    {
      name: 'address_claims_released_index',
      expression: `create index "address_claims_released_index" on "address_claims" ("released_at") where "released_at" is not null`,
    },
  ],
  properties: {
    email: p.text().primary(),
    organizationId: idColumn().fieldName('org_id'),
    inboxId: idColumn(),
    /** Null while an inbox holds the address. */
    releasedAt: timestamp().strictNullable(),
  },
});

export type AddressClaim = InferEntity<typeof AddressClaimEntity>;
