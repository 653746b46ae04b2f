import { type Static, Type } from 'typebox';
import type { DraftDetails } from '../../domain/drafts/draft.service.ts';
import { AddressSeen } from '../messages/addresses.ts';
import { contentFields, MAX_BODY_BYTES, MAX_SUBJECT_LENGTH } from '../messages/content.schemas.ts';
import { receiptOf } from '../receipts.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  ref,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

const addresses = Type.Array(ref(AddressSeen), { maxItems: 50 });
const emails = Type.Array(text(254), { maxItems: 50 });

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

export const DraftRecord = strictObject(
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
    send_status: enumOf(['draft', 'scheduled', 'failed']),
    send_error: nullableText(4096, {
      description: 'Why a scheduled send failed or was canceled by the service; null otherwise.',
    }),
    version: Type.Integer({
      minimum: 1,
      description: 'Increases with every change; compared with If-Match.',
    }),
    created_at: timestamp(),
    updated_at: timestamp(),
  },
  { $id: 'Draft', title: 'Draft' },
);

export const DraftReceipt = receiptOf(DraftRecord, ['id', 'inbox_id', 'env_id', 'send_status', 'version']);
/** Spread into the config of changes that return a draft. */
export const DRAFT_RESPONSE = { readPermission: 'drafts:read', receipt: DraftReceipt } as const;

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

/** A new draft may have undefined columns; the response has null for them. */
export function presentDraft({ draft, attachments }: DraftDetails): Static<typeof DraftRecord> {
  return {
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
    version: draft.version,
    created_at: draft.createdAt.toISOString(),
    updated_at: draft.updatedAt.toISOString(),
  };
}
