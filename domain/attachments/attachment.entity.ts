import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { MessageEntity } from '../messages/message.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** A file of a message. The bytes are in storage under `storageKey`. */
export const AttachmentEntity = defineEntity({
  name: 'Attachment',
  tableName: 'attachments',
  policies: tenantPolicies(),
  indexes: [{ properties: ['messageId', 'position'] }],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: idColumn().fieldName('env_id'),
    inboxId: () => p.manyToOne(InboxEntity).mapToPk().deleteRule('cascade'),
    messageId: () => p.manyToOne(MessageEntity).mapToPk().deleteRule('cascade'),
    position: p.smallint(),
    filename: p.text(),
    contentType: p.text(),
    sizeBytes: p.integer(),
    sha256: p.blob(),
    storageKey: p.text(),
    /** Without angle brackets (RFC 2392); empty where the part has none. */
    contentId: p.text().strictNullable(),
    disposition: p.text().$type<'attachment' | 'inline'>(),
    createdAt: createdAt(),
  },
});

export type Attachment = InferEntity<typeof AttachmentEntity>;
