import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { InboxEntity } from './inbox.entity.ts';

/** The password mail programs send for an inbox with (SMTP submission). No row until one was asked for. */
export const InboxCredentialEntity = defineEntity({
  name: 'InboxCredential',
  tableName: 'inbox_credentials',
  policies: tenantPolicies(),
  properties: {
    inboxId: () => p.manyToOne(InboxEntity).mapToPk().primary().deleteRule('cascade'),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** SHA-256: the password is drawn by us, and has too much chance in it to be guessed from its hash. */
    passwordHash: p.blob(),
    rotatedAt: timestamp(),
  },
});

export type InboxCredential = InferEntity<typeof InboxCredentialEntity>;
