import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import {
  createdAt,
  idColumn,
  json,
  lazy,
  primaryId,
  timestamp,
  updatedAt,
} from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import type { AutoSubmitted } from '../mime/build-mime.ts';
import type { FoundInvite } from '../mime/invites/find-invites.ts';
import type { FoundLink } from '../mime/links/find-links.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import type { FoundCode, Injection } from '../mime/message-findings.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import { ThreadEntity } from './thread.entity.ts';

/** Warnings that an agent should consider before it acts on a message. */
export const SIGNALS = [
  /** The sender's address did not occur in the thread before. */
  'new_participant',
  'authentication_failed',
  /** A program sent it. */
  'automated',
  /** Replies go to another address than the sender's. */
  'reply_to_differs',
  /** It contains text that people cannot see, which `extracted_text` leaves out. */
  'hidden_text',
  /** The words of a link show another host than its target. */
  'link_mismatch',
  /** It claims to come from the inbox's own domain or address, without authentication. */
  'spoofed_self',
  /** It names no author; `from` is the envelope sender. */
  'no_author',
] as const;
export type Signal = (typeof SIGNALS)[number];

const OUTBOUND_STATUSES = [
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
  /** Not returned by the API; for operators. */
  arc?: string;
  /**
   * Set only while the header cannot be read: the DMARC result that applies if the header names an author of this
   * domain.
   */
  unread?: { dmarc: string; authorDomain?: string };
}

/** DMARC decides; without a policy of the domain, SPF or DKIM does. */
export function isAuthenticated({
  spf,
  dkim,
  dmarc,
}: Pick<MessageAuthentication, 'spf' | 'dkim' | 'dmarc'>): boolean {
  return dmarc === 'pass' || (dmarc === 'none' && (spf === 'pass' || dkim === 'pass'));
}

export interface SpamVerdict {
  verdict: string;
  score: number | null;
}

/** One inbound or outbound message. Bodies are stored out of line and read only for a single message. */
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
      // Counts the recent sends of an inbox without reading its received messages.
      name: 'messages_outbound_index',
      expression: `create index "messages_outbound_index" on "messages" ("inbox_id", "id") where "direction" = 'outbound'`,
    },
    {
      name: 'messages_draft_index',
      expression: `create index "messages_draft_index" on "messages" ("draft_id") where "draft_id" is not null`,
    },
    {
      name: 'messages_unparsed_index',
      expression: `create index "messages_unparsed_index" on "messages" ("id") where "parse_error" is not null`,
    },
    {
      // What waits for a person: few rows, which a list by environment would look for among all messages.
      name: 'messages_attention_index',
      expression: `create index "messages_attention_index" on "messages" ("env_id", "id") where "status" = 'needs_attention'`,
    },
    {
      name: 'messages_unsettled_index',
      expression: `create index "messages_unsettled_index" on "messages" ("updated_at") where "status" in ('queued', 'sending', 'deferred', 'needs_attention')`,
    },
  ],
  triggers: [
    functionTrigger({
      name: 'reindex_content',
      table: 'messages',
      event: 'update',
      when: 'old.parse_error is distinct from new.parse_error',
      calls: 'reindex_message_content',
    }),
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
    functionTrigger({
      name: 'reindex_thread',
      table: 'messages',
      event: 'update',
      when: 'old.thread_id is distinct from new.thread_id',
      calls: 'reindex_message_thread',
    }),
    // Triggers count every outcome for the metrics, regardless of the code that records it.
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
    inboxId: () => p.manyToOne(InboxEntity).mapToPk().fieldName('inbox_id').deleteRule('cascade'),
    threadId: () => p.manyToOne(ThreadEntity).mapToPk().fieldName('thread_id').deleteRule('cascade'),
    direction: p.text().$type<MessageDirection>(),
    status: p.text().$type<MessageStatus>(),
    /** Why the status is `rejected`, `failed`, `canceled` or `needs_attention`; null otherwise. */
    statusDetail: p.text().strictNullable(),
    fromEmail: p.text(),
    fromName: p.text().strictNullable(),
    to: json(p.json().$type<MailAddress[]>()),
    cc: json(p.json().$type<MailAddress[]>()),
    bcc: json(p.json().$type<MailAddress[]>()),
    replyTo: json(p.json().$type<MailAddress[]>()),
    /** The envelope recipient (RFC 5321) of a received message, in lower case; null for outbound messages. */
    deliveredTo: p.text().strictNullable(),
    subject: p.text(),
    preview: p.text().default(''),
    textBody: lazy(p.text().strictNullable()),
    htmlBody: lazy(p.text().strictNullable()),
    extractedText: lazy(p.text().strictNullable()),
    /** Text of an inbound message that people cannot see, which `extractedText` leaves out; null if there is none. */
    hiddenText: lazy(p.text().strictNullable()),
    labels: p.array().$type<string[]>().default([]),
    hasAttachments: p.boolean().default(false),
    /** Without angle brackets (RFC 5322 section 3.6.4). Null for an inbound message without one. */
    rfcMessageId: p.text().strictNullable(),
    inReplyTo: p.text().strictNullable(),
    references: p.array().$type<string[]>().fieldName('reference_ids').default([]),
    /** The draft that became this message; null for a message that was sent directly or received. */
    draftId: idColumn().strictNullable(),
    /** Value of the Auto-Submitted field (RFC 3834) that the message is sent with; null for none, and for inbound messages. */
    autoSubmitted: p.text().$type<AutoSubmitted>().strictNullable(),
    /** The id assigned by the relay or provider; null until it accepts the message. */
    providerMessageId: p.text().strictNullable(),
    sizeBytes: p.integer().default(0),
    /** Outbound: the custom header fields. Inbound: all fields, with the last value of a repeated field. */
    headers: json(lazy(p.json().$type<Record<string, string>>())),
    /** Null for outbound messages. */
    authentication: json(p.json().$type<MessageAuthentication>().strictNullable()),
    spam: json(p.json().$type<SpamVerdict>().strictNullable()),
    automated: p.boolean().default(false),
    signals: p.array().$type<Signal[]>().default([]),
    /** One-time codes of an inbound message, the best first. */
    codes: json(p.json().$type<FoundCode[]>().defaultRaw(`'[]'`)),
    /** The links of an inbound message that an agent may need, at most five. */
    links: json(p.json().$type<FoundLink[]>().defaultRaw(`'[]'`)),
    allLinks: json(lazy(p.json().$type<FoundLink[]>().defaultRaw(`'[]'`))),
    /** The message has more links than `allLinks`. */
    hasMoreLinks: p.boolean().default(false),
    /** The events of the calendars of an inbound message. */
    invites: json(p.json().$type<FoundInvite[]>().defaultRaw(`'[]'`)),
    /** Signs that an inbound message tries to instruct the agent that reads it. */
    injection: json(p.json().$type<Injection>().defaultRaw(`'{"level": "none", "reasons": []}'`)),
    /** When a person dismissed the alarm of the message; null if none did. */
    injectionDismissedAt: timestamp().strictNullable(),
    /** The user who dismissed it. */
    injectionDismissedBy: idColumn().strictNullable(),
    /** The version of the rules that found codes, links and invitations; 0 for mail of a time before them. */
    findingsVersion: p.smallint().default(0),
    /** Whether `message.received` was emitted; false for inbound messages hidden on arrival. */
    announced: p.boolean().default(true),
    /** Set if the MIME structure could not be parsed; the raw message is available. */
    parseError: p.text().strictNullable(),
    /** Storage key of the exact bytes sent or received; null until an outbound message is built. */
    rawKey: p.text().strictNullable(),
    /** Storage key of a submitted message as received, until the bytes to send are built from it. */
    submittedKey: p.text().strictNullable(),
    /** A `trackDelivery` run was started, because the relay reports outcomes. */
    tracked: p.boolean().default(false),
    /** When the reconciler last checked the row's workflow run; null if never. */
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

export type RecipientStatus =
  | 'pending'
  | 'sent'
  | 'deferred'
  | 'delivered'
  | 'bounced'
  | 'complained'
  | 'suppressed'
  | 'rejected';

/** An envelope recipient (RFC 5321) of an outbound message, with its own SMTP transaction, return path and outcome. */
export const RecipientEntity = defineEntity({
  name: 'Recipient',
  tableName: 'message_recipients',
  policies: tenantPolicies({ staff: true }),
  properties: {
    messageId: () =>
      p.manyToOne(MessageEntity).mapToPk().fieldName('message_id').primary().deleteRule('cascade'),
    /** Position in the envelope, from 0; part of the return-path token. */
    position: p.smallint().primary(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    field: p.text().$type<'to' | 'cc' | 'bcc'>(),
    email: p.text(),
    status: p.text().$type<RecipientStatus>().default('pending'),
    /** Enhanced status code (RFC 3463) of the last SMTP response or report; null before the first response. */
    statusCode: p.text().strictNullable(),
    diagnosticCode: p.text().strictNullable(),
    sentAt: timestamp().strictNullable(),
    updatedAt: updatedAt(),
  },
});

export type Recipient = InferEntity<typeof RecipientEntity>;
