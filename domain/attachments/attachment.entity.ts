import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import { DraftEntity } from '../drafts/draft.entity.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { MessageEntity } from '../messages/message.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/**
 * A file of a message or a draft, or an unused upload. The bytes are in storage under `storageKey`, which several rows
 * may share. They are deleted after the last of these rows is deleted (see `unclaimed-object.entity.ts`).
 */
export const AttachmentEntity = defineEntity({
  name: 'Attachment',
  tableName: 'attachments',
  policies: tenantPolicies({ lookup: true }),
  indexes: [
    { properties: ['inboxId'] },
    { properties: ['messageId', 'position'] },
    { properties: ['draftId', 'position'] },
    { properties: ['storageKey'] },
    {
      name: 'attachments_text_index',
      expression: `create index "attachments_text_index" on "attachments" ("text_key") where "text_key" is not null`,
    },
    {
      name: 'attachments_unused_index',
      expression: `create index "attachments_unused_index" on "attachments" ("created_at") where "message_id" is null and "draft_id" is null`,
    },
  ],
  checks: [{ name: 'attachments_one_owner', expression: 'message_id is null or draft_id is null' }],
  triggers: [
    functionTrigger({
      name: 'attachments_release_object',
      table: 'attachments',
      event: 'delete',
      calls: 'release_attachment_object',
    }),
    // No update trigger, because sizes never change.
    functionTrigger({
      name: 'attachments_count_added',
      table: 'attachments',
      event: 'insert',
      perStatement: true,
      calls: 'count_storage',
    }),
    functionTrigger({
      name: 'attachments_count_removed',
      table: 'attachments',
      event: 'delete',
      perStatement: true,
      calls: 'count_storage',
    }),
    functionTrigger({
      name: 'attachments_index_added',
      table: 'attachments',
      event: 'insert',
      perStatement: true,
      calls: 'index_attachments',
    }),
    // The files of a draft become those of its message.
    functionTrigger({
      name: 'attachments_index_moved',
      table: 'attachments',
      event: 'update',
      perStatement: true,
      calls: 'index_attachments',
    }),
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: idColumn().fieldName('env_id'),
    inboxId: () => p.manyToOne(InboxEntity).mapToPk().fieldName('inbox_id').deleteRule('cascade'),
    messageId: () =>
      p.manyToOne(MessageEntity).mapToPk().fieldName('message_id').strictNullable().deleteRule('cascade'),
    draftId: () =>
      p.manyToOne(DraftEntity).mapToPk().fieldName('draft_id').strictNullable().deleteRule('cascade'),
    position: p.smallint(),
    filename: p.text(),
    contentType: p.text(),
    sizeBytes: p.integer(),
    sha256: p.blob(),
    storageKey: p.text(),
    /** Without angle brackets (RFC 2392); null if the part has none. */
    contentId: p.text().strictNullable(),
    /** The object with the text of the file; null until it is first read. Belongs to this row alone. */
    textKey: p.text().strictNullable(),
    disposition: p.text().$type<AttachmentDisposition>(),
    createdAt: createdAt(),
  },
});

export type AttachmentDisposition = 'attachment' | 'inline';
export type Attachment = InferEntity<typeof AttachmentEntity>;
