import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, primaryId, timestamp, updatedAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { COUNT_MESSAGE } from '../metrics/metric-delta.entity.ts';
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
    {
      // However a message goes, its bytes are looked at afterwards: those of a received one may be another's, too.
      name: 'discard_raw',
      timing: 'after',
      events: ['delete'],
      forEach: 'row',
      body: 'insert into unclaimed_objects (storage_key, org_id, due_at) select key, old.org_id, now() from unnest(array[old.raw_key, old.submitted_key]) key where key is not null on conflict (storage_key) do update set due_at = excluded.due_at; return null;',
    },
    // What a message is found by is written with it, whoever writes it, and again only when its labels change.
    {
      name: 'index_message',
      timing: 'after',
      events: ['insert'],
      forEach: 'row',
      body: 'insert into message_search (message_id, org_id, env_id, inbox_id, document) values (new.id, new.org_id, new.env_id, new.inbox_id, search_document(new)); return null;',
    },
    {
      name: 'reindex_labels',
      timing: 'after',
      events: ['update'],
      forEach: 'row',
      when: '(old.labels IS DISTINCT FROM new.labels)',
      body: 'update message_search set document = ts_delete(document, search_labels(old.labels)) || array_to_tsvector(search_labels(new.labels)) where message_id = new.id; return null;',
    },
    // What happens to a message counts in the metrics of its hour, whoever changes it.
    {
      name: 'count_new',
      timing: 'after',
      events: ['insert'],
      forEach: 'row',
      when: "((COALESCE(new.sent_at, new.delivered_at, new.bounced_at, new.complained_at, new.received_at) IS NOT NULL) OR (new.status = 'rejected'::text))",
      body: COUNT_MESSAGE,
    },
    {
      name: 'count_change',
      timing: 'after',
      events: ['update'],
      forEach: 'row',
      when: "((old.sent_at IS DISTINCT FROM new.sent_at) OR (old.delivered_at IS DISTINCT FROM new.delivered_at) OR (old.bounced_at IS DISTINCT FROM new.bounced_at) OR (old.complained_at IS DISTINCT FROM new.complained_at) OR (old.received_at IS DISTINCT FROM new.received_at) OR (old.announced IS DISTINCT FROM new.announced) OR ((new.status = 'rejected'::text) AND (old.status <> 'rejected'::text)))",
      body: COUNT_MESSAGE,
    },
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
