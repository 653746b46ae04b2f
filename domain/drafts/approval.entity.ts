import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
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

/** An address to which an inbox may send without approval for a limited time, because an approver allowed it. */
export const ApprovedRecipientEntity = defineEntity({
  name: 'ApprovedRecipient',
  tableName: 'approved_recipients',
  policies: tenantPolicies(),
  indexes: [{ properties: ['inboxId', 'id'] }, { properties: ['expiresAt'] }],
  uniques: [{ properties: ['inboxId', 'email'] }],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: () => p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').deleteRule('cascade'),
    inboxId: () => p.manyToOne(InboxEntity).mapToPk().fieldName('inbox_id').deleteRule('cascade'),
    /** Normalized by `toAddressKey`. */
    email: p.text(),
    /** Id of the user. */
    approvedBy: idColumn(),
    expiresAt: timestamp(),
    createdAt: createdAt(),
  },
});

export type ApprovedRecipient = InferEntity<typeof ApprovedRecipientEntity>;
