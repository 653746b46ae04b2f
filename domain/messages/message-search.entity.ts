import { defineEntity, p } from '@mikro-orm/core';
import { idColumn, lazy } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { MessageEntity } from './message.entity.ts';

/**
 * The search document of a message. It is a separate table, because otherwise every status change of a message would
 * rewrite its index entries. Only the triggers on `messages` write it, and only `search_messages` reads it.
 */
export const MessageSearchEntity = defineEntity({
  name: 'MessageSearch',
  tableName: 'message_search',
  policies: tenantPolicies({ lookup: true }),
  indexes: [
    { properties: ['environmentId', 'messageId'] },
    {
      // Finds the row of one message. A hash has no order: with an ordered index on the id alone, the planner might walk
      // through the newest messages of all tenants to find those of an inbox.
      name: 'message_search_message_index',
      expression: `create index "message_search_message_index" on "message_search" using hash ("message_id")`,
    },
    {
      // Every search reads the list of pending entries. At PostgreSQL's default limit of 4 MiB, reading the list costs
      // more than the search.
      name: 'message_search_document_index',
      expression: `create index "message_search_document_index" on "message_search" using gin ("document") with (gin_pending_list_limit = 512)`,
    },
  ],
  properties: {
    inboxId: idColumn().primary(),
    messageId: () =>
      p.manyToOne(MessageEntity).mapToPk().fieldName('message_id').primary().deleteRule('cascade'),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: idColumn().fieldName('env_id'),
    /**
     * Words with weights: A subject, B sender, C recipients, D text. Also facets, as lexemes that cannot be words: the
     * ids of environment, inbox and thread, `d:` direction, `f:` sender, `t:` recipient (each also as `@domain`), `l:` label,
     * `n:` a word of a file name, `h:attachment`.
     */
    document: lazy(p.text().columnType('tsvector')),
  },
});
