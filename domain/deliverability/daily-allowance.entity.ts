import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/**
 * How many messages an inbox has sent on its latest day of sending. Kept while the policy `daily_send_cap_per_inbox` is
 * set.
 */
export const InboxDailySendsEntity = defineEntity({
  name: 'InboxDailySends',
  tableName: 'inbox_daily_sends',
  policies: tenantPolicies(),
  properties: {
    inboxId: () => p.manyToOne(InboxEntity).mapToPk().fieldName('inbox_id').primary().deleteRule('cascade'),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** UTC. */
    day: p.date(),
    messages: p.integer(),
  },
});

export type InboxDailySends = InferEntity<typeof InboxDailySendsEntity>;

/** To how many recipients an organization may send, and has sent, from the shared domain on its latest day of sending. */
export const SharedDomainCapEntity = defineEntity({
  name: 'SharedDomainCap',
  tableName: 'shared_domain_caps',
  policies: tenantPolicies(),
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    /** UTC. */
    day: p.date(),
    recipients: p.integer(),
    /** Recipients allowed on that day. */
    cap: p.integer(),
  },
});
