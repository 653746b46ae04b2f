import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import {
  createdAt,
  idColumn,
  oneOf,
  primaryId,
  timestamp,
  updatedAt,
} from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** A conversation within one inbox. The columns after `subject` are its summary, see `addToThread`. */
export const ThreadEntity = defineEntity({
  name: 'Thread',
  tableName: 'threads',
  policies: tenantPolicies({ lookup: true }),
  indexes: [
    { properties: ['inboxId', 'lastMessageAt', 'id'] },
    { properties: ['environmentId', 'lastMessageAt', 'id'] },
    { properties: ['inboxId', 'baseSubject', 'lastMessageAt'] },
    {
      name: 'threads_merged_index',
      expression: `create index "threads_merged_index" on "threads" ("merged_into_id") where "merged_into_id" is not null`,
    },
    {
      name: 'threads_unmoved_index',
      expression: `create index "threads_unmoved_index" on "threads" ("updated_at") where "has_unmoved_messages"`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: () => p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').deleteRule('cascade'),
    inboxId: () => p.manyToOne(InboxEntity).mapToPk().fieldName('inbox_id').deleteRule('cascade'),
    subject: p.text(),
    /**
     * `subject` without reply and forward prefixes, lower case, at most 255 characters. Used for threading by subject.
     */
    baseSubject: p.text(),
    preview: p.text().default(''),
    labels: p.array().$type<string[]>().default([]),
    /** Addresses other than the inbox's own, in order of appearance, at most 100. */
    participants: p.array().$type<string[]>().default([]),
    /** Visible messages. 0 means that all messages are hidden (spam, blocked), and the thread is not listed. */
    messageCount: p.integer().default(0),
    lastMessageId: idColumn().strictNullable(),
    lastMessageAt: timestamp(),
    lastInboundAt: timestamp().strictNullable(),
    lastOutboundAt: timestamp().strictNullable(),
    hasAttachments: p.boolean().default(false),
    /** Sending in the thread is paused until then because of a mail loop; null if there never was one. */
    sendPausedUntil: timestamp().strictNullable(),
    /**
     * The thread has the conversation's first message: a trusted one that names no other message. Two such threads are two
     * conversations and are never merged.
     */
    hasRoot: p.boolean().default(false),
    /**
     * The older thread this one was merged into; null for a living thread. A merged thread remains as an alias: it has no
     * messages, except while `hasUnmovedMessages`.
     */
    mergedIntoId: () =>
      p
        .manyToOne(livingThread())
        .mapToPk()
        .fieldName('merged_into_id')
        .deleteRule('cascade')
        .strictNullable(),
    /** Messages of this merged thread that `moveThreadMessages` still has to move. */
    hasUnmovedMessages: p.boolean().default(false),
    /** When the reconciler last checked the row's workflow run; null if never. */
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type Thread = InferEntity<typeof ThreadEntity>;

/** The target of `mergedIntoId`. Its type is declared, because the type of an entity cannot be inferred from itself. */
function livingThread(): { '~entity': { id: string } } {
  return ThreadEntity;
}

/**
 * - `held`: a trusted message of the thread has this Message-ID.
 * - `named`: a trusted message of the thread names it in In-Reply-To or References, or an untrusted one started the thread
 *   with it.
 * - `unverified`: the Message-ID of an untrusted message that joined the thread. It never merges threads.
 */
const MESSAGE_ID_SOURCES = ['held', 'named', 'unverified'] as const;
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
