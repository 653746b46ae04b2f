import { type Static, Type } from 'typebox';
import {
  APPROVAL_SIGNALS,
  type ApprovalReview,
  DRAFT_SEND_STATUSES,
} from '../../domain/drafts/draft.entity.ts';
import type { DraftDetails } from '../../domain/drafts/draft.service.ts';
import type { Actor } from '../../domain/identity/scope.ts';
import { describeAlarm } from '../../domain/messages/injection-alarms.ts';
import { AddressSeen } from '../messages/addresses.ts';
import { contentFields, MAX_BODY_BYTES, MAX_SUBJECT_LENGTH } from '../messages/content.schemas.ts';
import { minimalOf } from '../minimal-response.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  orNull,
  ref,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

const addresses = Type.Array(ref(AddressSeen), { maxItems: 50 });
const emails = Type.Array(text(254), { maxItems: 50 });

export const MAX_NOTE_LENGTH = 2_000;
const IN_REPLY_TO =
  'Id (msg_…) of the message to reply to, not its Message-ID; looked up when the draft is sent.';

const AttachmentMeta = strictObject({
  attachment_id: id('Attachment id.'),
  filename: text(1024),
  content_type: text(255),
  size_bytes: Type.Integer({ minimum: 0 }),
  storage_key: text(1024),
  content_id: nullableText(1024),
  disposition: enumOf(['attachment', 'inline']),
});

const actor = (description: string) =>
  Type.Unsafe<{ kind: Actor['kind']; id: string } | null>({
    type: ['object', 'null'],
    additionalProperties: false,
    required: ['kind', 'id'],
    properties: {
      kind: enumOf(['api_key', 'connection', 'user', 'staff', 'system']),
      id: id('Id of the key or user; of the inbox for a message submitted over SMTP.'),
    },
    description,
  });

export const DraftApproval = strictObject(
  {
    requested_by: actor('Who asked to send the draft.'),
    requested_at: timestamp(),
    expires_at: nullableTimestamp('When it is rejected unless a person decides; null if it was approved.'),
    signals: Type.Array(enumOf(APPROVAL_SIGNALS), {
      maxItems: APPROVAL_SIGNALS.length,
      description: 'What an approver should consider.',
    }),
    recipients: Type.Array(
      strictObject({
        email: text(320),
        external: Type.Boolean({
          description: 'Outside the inboxes and verified domains of the organization.',
        }),
        first_contact: Type.Boolean({
          description: 'The inbox has not recently exchanged messages with this address.',
        }),
      }),
      { maxItems: 100, description: 'Everyone it would be sent to, blind copies included.' },
    ),
    alarm_message_id: nullableText(64, {
      description:
        'The received message (msg_…) whose injection alarm demands the approval; null if a policy alone does.',
    }),
    reason: nullableText(200, {
      description: 'In words for people, what the alarm is about; null without one.',
    }),
    changes: Type.Array(
      strictObject({
        version: Type.Integer({ minimum: 1 }),
        changed_at: timestamp(),
        fields: Type.Array(text(64), { maxItems: 50 }),
      }),
      {
        maxItems: 20,
        description: 'Changes while the draft waited, oldest first: compare with the version seen last.',
      },
    ),
    decided_by: nullableText(64, { description: 'User (usr_…) who approved or rejected it.' }),
    decided_at: nullableTimestamp(),
    note: nullableText(MAX_NOTE_LENGTH, { description: 'The reason that the approver gave.' }),
  },
  { $id: 'DraftApproval', title: 'DraftApproval' },
);

export const DraftRecord = resource(
  'draft',
  {
    id: id('Draft id (drf_…).'),
    inbox_id: id('Inbox the draft belongs to.'),
    env_id: id('Environment.'),
    thread_id: nullableText(255, {
      description: 'Thread to reply in, or an alias of it; looked up when the draft is sent.',
    }),
    in_reply_to: nullableText(255, { description: IN_REPLY_TO }),
    subject: nullableText(MAX_SUBJECT_LENGTH),
    to: addresses,
    cc: addresses,
    bcc: addresses,
    to_addresses: emails,
    cc_addresses: emails,
    bcc_addresses: emails,
    reply_to: addresses,
    text_body: nullableText(MAX_BODY_BYTES),
    html_body: nullableText(MAX_BODY_BYTES),
    labels: Type.Array(text(64), { maxItems: 50 }),
    headers: Type.Unsafe<Record<string, string>>({
      type: 'object',
      maxProperties: 50,
      additionalProperties: text(998),
    }),
    unsubscribe: Type.Boolean({
      description: 'Whether it is sent with a link for one-click unsubscription.',
    }),
    attachments_meta: Type.Array(AttachmentMeta, { maxItems: 100 }),
    send_at: nullableTimestamp('When the draft is sent automatically; null if it is not scheduled.'),
    send_status: enumOf(DRAFT_SEND_STATUSES),
    send_error: nullableText(4096, {
      description:
        'Why a scheduled send failed or was canceled by the service, or why the draft was not approved: approval_rejected, approval_expired or approval_canceled; requester_not_allowed if its requester or approver may no longer let it leave; null otherwise.',
    }),
    approval: Type.Unsafe<Static<typeof DraftApproval> | null>({
      anyOf: [ref(DraftApproval), { type: 'null' }],
      description: 'The latest request for the approval of a person; null if there was none.',
    }),
    created_by: actor('Who created the draft; null if that was not recorded.'),
    last_edited_by: actor('Who created or last changed the draft; null if that was not recorded.'),
    version: Type.Integer({
      minimum: 1,
      description:
        'Increases with every change; compared with If-Match and with the version in a request to send.',
    }),
    created_at: timestamp(),
    updated_at: timestamp(),
  },
  { $id: 'Draft', title: 'Draft' },
);

export const MinimalDraft = minimalOf(DraftRecord, ['id', 'inbox_id', 'env_id', 'send_status', 'version']);
/** Spread into the config of changes that return a draft. */
export const DRAFT_RESPONSE = { readPermission: 'drafts:read', minimalResponse: MinimalDraft } as const;

/** Spread into the config of operations that send, or return a scheduled draft. */
export const SCHEDULED_RESPONSE = { accepted: DRAFT_RESPONSE } as const;

const fields = {
  ...contentFields,
  thread_id: Type.Optional(nullableText(255)),
  in_reply_to: Type.Optional(nullableText(255, { description: IN_REPLY_TO })),
  send_at: Type.Optional(
    Type.Unsafe<string | null>({
      type: ['string', 'null'],
      format: 'date-time',
      maxLength: 40,
      description:
        'Sends the draft automatically at this time, or immediately if it is in the past; null unschedules it.',
    }),
  ),
};
export const DraftFields = strictObject(fields, {
  $id: 'DraftFields',
  title: 'DraftFields',
  description: 'Every field is optional: an omitted field is kept, null clears it.',
});

export const SendDraft = strictObject(
  {
    version: Type.Optional(
      orNull(
        Type.Integer({
          minimum: 1,
          maximum: 2_147_483_647,
          description: 'The version of the draft that you have seen. Another one is a 409.',
        }),
      ),
    ),
  },
  { $id: 'SendDraft', title: 'SendDraft' },
);

const presentActor = (kind: Actor['kind'] | null, actorId: string | null) =>
  kind && actorId ? { kind, id: actorId } : null;

function presentApproval(draft: DraftDetails['draft']): Static<typeof DraftApproval> | null {
  const { approvalRequestedAt, approvalReview, requestedByKind, requestedById } = draft;
  if (!approvalRequestedAt || !approvalReview) return null;
  return {
    requested_by: presentActor(requestedByKind, requestedById),
    requested_at: approvalRequestedAt.toISOString(),
    expires_at: draft.approvalExpiresAt?.toISOString() ?? null,
    ...approvalReview,
    ...presentAlarm(approvalReview),
    decided_by: draft.decidedById ?? null,
    decided_at: draft.decidedAt?.toISOString() ?? null,
    note: draft.decisionNote ?? null,
  };
}

export function presentAlarm({ alarm_message_id: messageId = null }: ApprovalReview) {
  return { alarm_message_id: messageId, reason: messageId === null ? null : describeAlarm(messageId) };
}

/** A new draft may have undefined columns; the response has null for them. */
export function presentDraft({ draft, attachments }: DraftDetails): Static<typeof DraftRecord> {
  return {
    object: 'draft',
    id: draft.id,
    inbox_id: draft.inboxId,
    env_id: draft.environmentId,
    thread_id: draft.threadId ?? null,
    in_reply_to: draft.inReplyTo ?? null,
    subject: draft.subject ?? null,
    to: draft.to,
    cc: draft.cc,
    bcc: draft.bcc,
    to_addresses: draft.to.map(({ email }) => email),
    cc_addresses: draft.cc.map(({ email }) => email),
    bcc_addresses: draft.bcc.map(({ email }) => email),
    reply_to: draft.replyTo,
    text_body: draft.textBody ?? null,
    html_body: draft.htmlBody ?? null,
    labels: draft.labels,
    headers: draft.headers,
    unsubscribe: draft.unsubscribe,
    attachments_meta: attachments.map((attachment) => ({
      attachment_id: attachment.id,
      filename: attachment.filename,
      content_type: attachment.contentType,
      size_bytes: attachment.sizeBytes,
      storage_key: attachment.storageKey,
      content_id: attachment.contentId ?? null,
      disposition: attachment.disposition,
    })),
    send_at: draft.sendAt?.toISOString() ?? null,
    send_status: draft.sendStatus,
    send_error: draft.sendError ?? null,
    approval: presentApproval(draft),
    created_by: presentActor(draft.createdByKind, draft.createdById),
    last_edited_by: presentActor(draft.lastEditedByKind, draft.lastEditedById),
    version: draft.version,
    created_at: draft.createdAt.toISOString(),
    updated_at: draft.updatedAt.toISOString(),
  };
}
