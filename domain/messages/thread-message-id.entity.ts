import { defineEntity, p } from '@mikro-orm/core';
import { idColumn, oneOf } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { ThreadEntity } from './thread.entity.ts';

/**
 * - `held`: a trusted message of the thread has this Message-ID.
 * - `named`: a trusted message of the thread names it in In-Reply-To or References, or an untrusted one started the thread
 *   with it.
 * - `unverified`: the Message-ID of an untrusted message that joined the thread. It never merges threads.
 */
export const MESSAGE_ID_SOURCES = ['held', 'named', 'unverified'] as const;
export type MessageIdSource = (typeof MESSAGE_ID_SOURCES)[number];

/**
 * The Message-IDs that the messages of an inbox have or name, each with its thread. After a merge a row keeps the merged
 * thread, which is an alias. Rows are deleted with their thread.
 */
export const ThreadMessageIdEntity = defineEntity({
  name: 'ThreadMessageId',
  tableName: 'thread_message_ids',
  policies: tenantPolicies(),
  indexes: [{ properties: ['threadId'] }],
  checks: [{ name: 'thread_message_ids_source', expression: oneOf('source', MESSAGE_ID_SOURCES) }],
  properties: {
    inboxId: idColumn().primary(),
    /** `hashMessageId` of the id: ids can be longer than an index entry may be. */
    idHash: idColumn().primary(),
    organizationId: idColumn().fieldName('org_id'),
    // Deferred: ids are inserted before the thread they may start.
    threadId: () =>
      p.manyToOne(ThreadEntity).mapToPk().fieldName('thread_id').deleteRule('cascade').deferMode('deferred'),
    source: p.text().$type<MessageIdSource>(),
  },
});
