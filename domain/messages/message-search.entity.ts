import { defineEntity, p } from '@mikro-orm/core';
import { idColumn } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { MessageEntity } from './message.entity.ts';

/**
 * What a message is found by. A table of its own, because every change of a message's status would write all its
 * words into the index again. Triggers on `messages` keep it; nothing else writes it, and only `search_messages` reads
 * it.
 */
export const MessageSearchEntity = defineEntity({
  name: 'MessageSearch',
  tableName: 'message_search',
  policies: tenantPolicies({ lookup: true }),
  indexes: [
    { properties: ['environmentId', 'messageId'] },
    {
      // For what changes one message. Without order: an index by id alone would offer the planner a walk through the
      // newest messages of all tenants, on the way to those of an inbox.
      name: 'message_search_message_index',
      expression: `create index "message_search_message_index" on "message_search" using hash ("message_id")`,
    },
    {
      name: 'message_search_document_index',
      expression: `create index "message_search_document_index" on "message_search" using gin ("document")`,
    },
  ],
  properties: {
    inboxId: idColumn().primary(),
    messageId: () => p.manyToOne(MessageEntity).mapToPk().primary().deleteRule('cascade'),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: idColumn().fieldName('env_id'),
    /**
     * Words: weight A subject, B sender, C recipients, D text. Beside them facets, as lexemes no word can be: the ids
     * of environment, inbox and thread, `d:` direction, `f:` sender, `t:` recipient, `l:` label, `h:attachment`.
     */
    document: p.text().columnType('tsvector').lazy(),
  },
});
