import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { InboxEntity } from './inbox.entity.ts';

/** The SMTP submission password of an inbox. Without a password there is no row. */
export const InboxCredentialEntity = defineEntity({
  name: 'InboxCredential',
  tableName: 'inbox_credentials',
  policies: tenantPolicies(),
  properties: {
    inboxId: () => p.manyToOne(InboxEntity).mapToPk().fieldName('inbox_id').primary().deleteRule('cascade'),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** SHA-256 suffices: the password is generated with enough entropy to resist guessing. */
    passwordHash: p.blob(),
    rotatedAt: timestamp(),
  },
});

export type InboxCredential = InferEntity<typeof InboxCredentialEntity>;
