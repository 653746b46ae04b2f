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
    { properties: ['inboxId', 'messageId'] },
    { properties: ['environmentId', 'messageId'] },
    {
      name: 'message_search_document_index',
      expression: `create index "message_search_document_index" on "message_search" using gin ("document")`,
    },
  ],
  properties: {
    messageId: () => p.manyToOne(MessageEntity).mapToPk().primary().deleteRule('cascade'),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: idColumn().fieldName('env_id'),
    inboxId: idColumn(),
    /**
     * Words: weight A subject, B sender, C recipients, D text. Beside them facets, as lexemes no word can be: the ids
     * of environment, inbox and thread, `d:` direction, `f:` sender, `t:` recipient, `l:` label, `h:attachment`.
     */
    document: p.text().columnType('tsvector').lazy(),
  },
});
