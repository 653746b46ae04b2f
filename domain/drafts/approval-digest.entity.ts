import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** When the approvers of an organization were last emailed about waiting drafts. */
export const ApprovalDigestEntity = defineEntity({
  name: 'ApprovalDigest',
  tableName: 'approval_digests',
  policies: tenantPolicies(),
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    sentAt: timestamp(),
  },
});

export type ApprovalDigest = InferEntity<typeof ApprovalDigestEntity>;
