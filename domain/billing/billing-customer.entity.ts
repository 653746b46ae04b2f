import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, updatedAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { Tier } from '../organizations/tier.ts';

/** The organization as Stripe knows it. The row is locked while one of its subscriptions changes. */
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
     * The tier that the subscriptions last gave the organization; null if they give none. A tier that staff have set
     * since then stays until the subscriptions give a different one.
     */
    appliedTier: p.text().$type<Tier>().strictNullable(),
    /** The last checkout session (`cs_…`), reused while it is open; null before the first. */
    checkoutSessionId: idColumn().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type BillingCustomer = InferEntity<typeof BillingCustomerEntity>;
