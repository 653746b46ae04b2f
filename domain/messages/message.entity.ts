import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, primaryId, timestamp, updatedAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { Signal } from './signals.ts';
import { ThreadEntity } from './thread.entity.ts';

export const OUTBOUND_STATUSES = [
  'queued',
  'sending',
  'deferred',
  'sent',
  'delivered',
  'bounced',
  'complained',
  'rejected',
  'failed',
  'canceled',
  'needs_attention',
] as const;
export const MESSAGE_STATUSES = [...OUTBOUND_STATUSES, 'received'] as const;
export type MessageStatus = (typeof MESSAGE_STATUSES)[number];
export type MessageDirection = 'inbound' | 'outbound';

export interface MessageAuthentication {
  spf: string;
  dkim: string;
  dmarc: string;
  /** Kept for operators; the API shows the three. */
  arc?: string;
}

export interface SpamVerdict {
  verdict: string;
  score: number | null;
}

/** One mail, in or out. Bodies are out of line in PostgreSQL and only read where one message is asked for. */
export const MessageEntity = defineEntity({
  name: 'Message',
  tableName: 'messages',
  policies: tenantPolicies({ lookup: true }),
  indexes: [
    { properties: ['inboxId', 'id'] },
    { properties: ['environmentId', 'id'] },
    { properties: ['threadId', 'id'] },
    { properties: ['inboxId', 'rfcMessageId'] },
    {
      // Counts what an inbox has sent lately, without walking through all it has received.
      name: 'messages_outbound_index',
      expression: `create index "messages_outbound_index" on "messages" ("inbox_id", "id") where "direction" = 'outbound'`,
    },
    {
      name: 'messages_unsettled_index',
      expression: `create index "messages_unsettled_index" on "messages" ("updated_at") where "status" in ('queued', 'sending', 'deferred', 'needs_attention')`,
    },
  ],
  triggers: [
    functionTrigger({
      name: 'release_objects',
      table: 'messages',
      event: 'delete',
      calls: 'release_message_objects',
    }),
    functionTrigger({ name: 'index_message', table: 'messages', event: 'insert', calls: 'index_message' }),
    functionTrigger({
      name: 'reindex_labels',
      table: 'messages',
      event: 'update',
      when: 'old.labels is distinct from new.labels',
      calls: 'reindex_message_labels',
    }),
    // Metrics count every outcome, whoever records it.
    functionTrigger({
      name: 'count_insert',
      table: 'messages',
      event: 'insert',
      when: `coalesce(new.sent_at, new.delivered_at, new.bounced_at, new.complained_at, new.received_at) is not null
        or new.status = 'rejected'`,
      calls: 'count_message',
    }),
    functionTrigger({
      name: 'count_update',
      table: 'messages',
      event: 'update',
      when: `old.sent_at is distinct from new.sent_at or old.delivered_at is distinct from new.delivered_at
        or old.bounced_at is distinct from new.bounced_at or old.complained_at is distinct from new.complained_at
        or old.received_at is distinct from new.received_at or old.announced is distinct from new.announced
        or new.status = 'rejected' and old.status <> 'rejected'`,
      calls: 'count_message',
    }),
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: () => p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').deleteRule('cascade'),
    inboxId: () => p.manyToOne(InboxEntity).mapToPk().deleteRule('cascade'),
    threadId: () => p.manyToOne(ThreadEntity).mapToPk().deleteRule('cascade'),
    direction: p.text().$type<MessageDirection>(),
    status: p.text().$type<MessageStatus>(),
    /** Why the status is `rejected`, `failed`, `canceled` or `needs_attention`; empty otherwise. */
    statusDetail: p.text().strictNullable(),
    fromEmail: p.text(),
    fromName: p.text().strictNullable(),
    to: p.json().$type<MailAddress[]>(),
    cc: p.json().$type<MailAddress[]>(),
    bcc: p.json().$type<MailAddress[]>(),
    replyTo: p.json().$type<MailAddress[]>(),
    subject: p.text(),
    preview: p.text().default(''),
    textBody: p.text().strictNullable().lazy(),
    htmlBody: p.text().strictNullable().lazy(),
    extractedText: p.text().strictNullable().lazy(),
    labels: p.array().$type<string[]>().default([]),
    hasAttachments: p.boolean().default(false),
    /** Without angle brackets (RFC 5322 section 3.6.4). Empty for inbound mail that has none. */
    rfcMessageId: p.text().strictNullable(),
    inReplyTo: p.text().strictNullable(),
    references: p.array().$type<string[]>().fieldName('reference_ids').default([]),
    /** What the relay or provider calls it; empty until one accepted it. */
    providerMessageId: p.text().strictNullable(),
    sizeBytes: p.integer().default(0),
    /** Outbound: the caller's own header fields. Inbound: all, last value of a repeated field wins. */
    headers: p.json().$type<Record<string, string>>().lazy(),
    /** Empty on outbound mail. */
    authentication: p.json().$type<MessageAuthentication>().strictNullable(),
    spam: p.json().$type<SpamVerdict>().strictNullable(),
    automated: p.boolean().default(false),
    signals: p.array().$type<Signal[]>().default([]),
    /** `message.received` was told; false on inbound mail that was hidden from the start. */
    announced: p.boolean().default(true),
    /** Set where the MIME structure could not be read; the raw message is there all the same. */
    parseError: p.text().strictNullable(),
    /** Storage key of the exact bytes sent or received; empty until an outbound message is built. */
    rawKey: p.text().strictNullable(),
    /** Storage key of a mail as a mail program handed it over, until the bytes to be sent are made of it. */
    submittedKey: p.text().strictNullable(),
    /** A `trackDelivery` run was started, because the relay reports outcomes. */
    tracked: p.boolean().default(false),
    /** When the reconciler last looked after the row's run; empty while everything goes its way. */
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
    queuedAt: timestamp().strictNullable(),
    sentAt: timestamp().strictNullable(),
    deliveredAt: timestamp().strictNullable(),
    bouncedAt: timestamp().strictNullable(),
    complainedAt: timestamp().strictNullable(),
    receivedAt: timestamp().strictNullable(),
  },
});

export type Message = InferEntity<typeof MessageEntity>;
