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
import type { Actor } from '../identity/scope.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';
import type { Submission } from '../outbound/outbound-content.ts';

export const DRAFT_SEND_STATUSES = ['draft', 'scheduled', 'pending_approval', 'rejected', 'failed'] as const;
export type DraftSendStatus = (typeof DRAFT_SEND_STATUSES)[number];

/** What an approver should know about a draft. Stored as the API returns it. */
export interface ApprovalReview {
  signals: ApprovalSignal[];
  recipients: { email: string; external: boolean; first_contact: boolean }[];
  /** The received message whose injection alarm demands the approval; null or absent if a policy alone does. */
  alarm_message_id?: string | null;
  /** Changes while the draft waited, oldest first; at most the newest 20. */
  changes: { version: number; changed_at: string; fields: string[] }[];
}

/** One version of a draft as approvers could see it. */
export interface ShownVersion {
  version: number;
  subject: string | null;
  to: MailAddress[];
  cc: MailAddress[];
  bcc: MailAddress[];
  text: string | null;
  /** Kept only if the draft has no text; the text is then made from it. */
  html: string | null;
  /** The content is too long to be kept, so it cannot be compared. */
  isTooLong: boolean;
}

export const APPROVAL_SIGNALS = [
  /** A recipient is outside the organization's inboxes and verified domains. */
  'external_recipient',
  /** The inbox has not recently exchanged messages with a recipient. */
  'first_contact',
  'attachments',
  /** A received message shows signs of prompt injection. */
  'injection_alarm',
  /** It was changed after it was first shown to approvers. */
  'changed',
] as const;
export type ApprovalSignal = (typeof APPROVAL_SIGNALS)[number];

/** An unsent message. Sending deletes it in the transaction that creates the message. */
export const DraftEntity = defineEntity({
  name: 'Draft',
  tableName: 'drafts',
  policies: tenantPolicies({ lookup: true }),
  triggers: [
    functionTrigger({
      name: 'release_submission',
      table: 'drafts',
      event: 'delete',
      when: 'old.submission is not null',
      calls: 'release_submission',
    }),
  ],
  indexes: [
    { properties: ['inboxId', 'id'] },
    { properties: ['organizationId', 'id'] },
    {
      name: 'drafts_pending_approval_index',
      expression: `create index "drafts_pending_approval_index" on "drafts" ("org_id", "id") where "send_status" = 'pending_approval'`,
    },
    {
      name: 'drafts_submission_index',
      expression: `create index "drafts_submission_index" on "drafts" ("inbox_id", ("submission" ->> 'messageId')) where "submission" is not null`,
    },
    {
      name: 'drafts_scheduled_index',
      expression: `create index "drafts_scheduled_index" on "drafts" ("send_at") where "send_status" = 'scheduled'`,
    },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    environmentId: () => p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').deleteRule('cascade'),
    inboxId: () => p.manyToOne(InboxEntity).mapToPk().fieldName('inbox_id').deleteRule('cascade'),
    /** Any string from the caller; looked up only when the draft is sent (specification, "Draft"). */
    threadId: p.text().strictNullable(),
    inReplyTo: p.text().strictNullable(),
    /** The received or sent message that it forwards; null if it forwards none. */
    forwardedMessageId: idColumn().strictNullable(),
    subject: p.text().strictNullable(),
    to: json(p.json().$type<MailAddress[]>()),
    cc: json(p.json().$type<MailAddress[]>()),
    bcc: json(p.json().$type<MailAddress[]>()),
    replyTo: json(p.json().$type<MailAddress[]>()),
    textBody: p.text().strictNullable(),
    htmlBody: p.text().strictNullable(),
    labels: p.array().$type<string[]>().default([]),
    headers: json(p.json().$type<Record<string, string>>()),
    /** Add a link for one-click unsubscription when it is sent. */
    unsubscribe: p.boolean().default(false),
    sendAt: timestamp().strictNullable(),
    sendStatus: p.text().$type<DraftSendStatus>().default('draft'),
    /** Why a scheduled send failed or was canceled; null otherwise. */
    sendError: p.text().strictNullable(),
    /** Incremented with every new schedule, because each schedule has its own workflow run. */
    scheduleVersion: p.integer().default(0),
    /**
     * Who scheduled the draft or requested its send; null for any other draft, and for drafts from before approvals
     * existed.
     */
    requestedByKind: p.text().$type<Actor['kind']>().strictNullable(),
    requestedById: idColumn().strictNullable(),
    approvalRequestedAt: timestamp().strictNullable(),
    approvalExpiresAt: timestamp().strictNullable(),
    /** Incremented with every request for approval, because each request has its own workflow run. */
    approvalGeneration: p.integer().default(0),
    /** Whether an email to the approvers has counted it. */
    approvalAnnounced: p.boolean().default(false),
    approvalReview: json(p.json().$type<ApprovalReview>().strictNullable()),
    /**
     * The versions shown to approvers since the draft started to wait, to compare them with the current version; at
     * most 20.
     */
    approvalHistory: json(lazy(p.json().$type<ShownVersion[]>().strictNullable())),
    /** The version that a person approved. A later one needs another approval. */
    approvedVersion: p.integer().strictNullable(),
    /** The user who approved or rejected it; null if it expired. */
    decidedById: idColumn().strictNullable(),
    decidedAt: timestamp().strictNullable(),
    decisionNote: p.text().strictNullable(),
    /** The bytes and envelope of a message that was submitted over SMTP; null for every other draft. */
    submission: json(p.json().$type<Submission>().strictNullable()),
    /** Incremented with every change; compared with `If-Match`. */
    version: p.integer().default(1),
    /** Who created the draft. Null for a draft from before this was recorded. */
    createdByKind: p.text().$type<Actor['kind']>().strictNullable(),
    createdById: idColumn().strictNullable(),
    /** Who created or last changed the draft. Null for a draft from before this was recorded. */
    lastEditedByKind: p.text().$type<Actor['kind']>().strictNullable(),
    lastEditedById: idColumn().strictNullable(),
    /** When the reconciler last checked the row's workflow run; null if never. */
    reconciledAt: timestamp().strictNullable(),
    createdAt: createdAt(),
    updatedAt: updatedAt(),
  },
});

export type Draft = Omit<InferEntity<typeof DraftEntity>, 'approvalHistory'> & {
  /** Present only after a request for approval, which extends it. */
  approvalHistory?: ShownVersion[] | null;
};
