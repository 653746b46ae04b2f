import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, updatedAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { Tier } from '../organizations/tier.ts';

/** The organization as Stripe knows it. Its row is locked while a subscription of it changes. */
export const BillingCustomerEntity = defineEntity({
  name: 'BillingCustomer',
  tableName: 'billing_customers',
  policies: tenantPolicies({ staff: true }),
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().primary().fieldName('org_id').deleteRule('cascade'),
    /** `cus_…`; replaced if it was deleted at Stripe. */
    customerId: idColumn().unique(),
    /**
     * The tier that the subscriptions gave the organization last; null if they give none. What staff set since then stays
     * until the subscriptions give another one.
     */
    appliedTier: p.text().$type<Tier>().strictNullable(),
    /** The last checkout session (`cs_…`), which is used again while it is open; null before the first. */
    checkoutSessionId: idColumn().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type BillingCustomer = InferEntity<typeof BillingCustomerEntity>;
