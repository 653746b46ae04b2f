import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, primaryId } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { DraftEntity } from '../drafts/draft.entity.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { MessageEntity } from '../messages/message.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/**
 * A file of a message, of a draft, or of neither: an upload that waits to be used. The bytes are in storage under
 * `storageKey`, which several rows may share; they go when the last of these rows has gone (see
 * `discarded-object.entity.ts`).
 */
export const AttachmentEntity = defineEntity({
  name: 'Attachment',
  tableName: 'attachments',
  policies: tenantPolicies(),
  indexes: [
    { properties: ['messageId', 'position'] },
    { properties: ['draftId', 'position'] },
    { properties: ['storageKey'] },
    {
      name: 'attachments_unused_index',
      expression: `create index "attachments_unused_index" on "attachments" ("created_at") where "message_id" is null and "draft_id" is null`,
    },
  ],
  checks: [{ name: 'attachments_one_owner', expression: 'message_id is null or draft_id is null' }],
  triggers: [
    {
      // However a row goes, also with its message, draft, inbox or organization, its bytes are looked at afterwards. An
      // entry that is there is updated, and so locked: the sweep must not take it out for a row that is about to go.
      name: 'attachments_discard_object',
      timing: 'after',
      events: ['delete'],
      forEach: 'row',
      body: `insert into unclaimed_objects (storage_key, org_id, due_at) values (old.storage_key, old.org_id, now()) on conflict (storage_key) do update set due_at = excluded.due_at; return null;`,
    },
    // `storage_bytes` is the sum of these rows' sizes, however they come and go; a size never changes.
    {
      name: 'attachments_count_added',
      timing: 'after',
      events: ['insert'],
      forEach: 'statement',
      expression: `create trigger "attachments_count_added" after insert on "attachments" referencing new table as changed for each statement execute function "count_storage"()`,
    },
    {
      name: 'attachments_count_removed',
      timing: 'after',
      events: ['delete'],
      forEach: 'statement',
      expression: `create trigger "attachments_count_removed" after delete on "attachments" referencing old table as changed for each statement execute function "count_storage"()`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: idColumn().fieldName('env_id'),
    inboxId: () => p.manyToOne(InboxEntity).mapToPk().deleteRule('cascade'),
    messageId: () => p.manyToOne(MessageEntity).mapToPk().strictNullable().deleteRule('cascade'),
    draftId: () => p.manyToOne(DraftEntity).mapToPk().strictNullable().deleteRule('cascade'),
    position: p.smallint(),
    filename: p.text(),
    contentType: p.text(),
    sizeBytes: p.integer(),
    sha256: p.blob(),
    storageKey: p.text(),
    /** Without angle brackets (RFC 2392); empty where the part has none. */
    contentId: p.text().strictNullable(),
    disposition: p.text().$type<AttachmentDisposition>(),
    createdAt: createdAt(),
  },
});

export type AttachmentDisposition = 'attachment' | 'inline';
export type Attachment = InferEntity<typeof AttachmentEntity>;
