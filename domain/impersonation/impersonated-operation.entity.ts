import { defineEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { ImpersonationEntity } from './impersonation.entity.ts';

/** What an impersonation called, and on what: the organization sees it in its audit log. */
export const ImpersonatedOperationEntity = defineEntity({
  name: 'ImpersonatedOperation',
  tableName: 'impersonated_operations',
  policies: tenantPolicies({ staff: true }),
  indexes: [{ properties: ['organizationId'] }],
  properties: {
    impersonationId: () =>
      p
        .manyToOne(ImpersonationEntity)
        .mapToPk()
        .fieldName('impersonation_id')
        .primary()
        .deleteRule('cascade'),
    /** Operation id of the API or of a page, such as `messages.get`. */
    operation: p.text().primary(),
    /** The id that the path names; empty without one, and beyond the number that is kept. */
    resourceId: idColumn().primary(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    isChange: p.boolean(),
    calls: p.integer(),
    /** The first call. */
    createdAt: createdAt(),
  },
});
