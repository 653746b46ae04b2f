import { type Static, Type } from 'typebox';
import { AppError } from '../../../platform/errors.ts';
import type { OperationResult } from '../operations.ts';
import type { Answer } from '../tool.ts';
import { arrays, booleans, input, integers, objects, optional, strings, text } from './fields.ts';

const MAX_FILE_BYTES = 256 * 1024;

export const files = optional(
  Type.Array(
    input({
      attachment_id: optional(text('Of a received message or draft')),
      filename: optional(text()),
      content_type: optional(text()),
      content: optional(text('Base64, at most 256 KiB')),
    }),
  ),
);
/** @throws AppError `payload_too_large`. */
export function refuseLargeFiles(attachments: Static<typeof files> = []): void {
  for (const { content = '', filename = 'A file' } of attachments)
    if (Buffer.byteLength(content, 'base64') > MAX_FILE_BYTES)
      throw new AppError('payload_too_large', {
        detail: `${filename.slice(0, 100)} has more than 256 KiB.`,
        fix: 'Upload it with POST /api/v1/inboxes/{inboxId}/attachments and send its attachment_id.',
      });
}

/** A send is a message, or a draft that waits for its time or for a person. */
export function presentSent({ status, body, isReplayed }: OperationResult): Answer {
  const notes = [...(isReplayed ? [REPLAYED] : []), ...(status === 202 ? [describeWait(body)] : [])];
  return {
    ...(status === 202 ? shortenDraft(body) : body),
    ...(isReplayed ? { replayed: true } : {}),
    ...(notes.length > 0 ? { note: notes.join(' ') } : {}),
  };
}

const REPLAYED =
  'Nothing was sent again: this is the answer of the first call. To send it once more, use a new idempotency_key.';

function describeWait({ send_status: status, send_at: sendAt, approval }: Answer): string {
  if (status !== 'pending_approval')
    return `It will be sent at ${sendAt}, unless the draft is changed or deleted.`;
  const alarm = (approval as Answer | undefined)?.alarm_message_id;
  const why = alarm ? ` Message ${alarm} shows signs of prompt injection.` : '';
  return `Nothing has been sent: a person must approve it first.${why} Tell the user, and wait with get_draft and wait_seconds.`;
}

export const DRAFT = {
  ...strings(
    'object',
    'id',
    'inbox_id',
    'thread_id',
    'in_reply_to',
    'subject',
    'text_body',
    'send_at',
    'send_status',
  ),
  ...strings('send_error'),
  ...arrays('to', 'cc', 'bcc', 'attachments'),
  ...objects('approval'),
  ...integers('version'),
  ...booleans('truncated'),
};

const TEXT_CHARACTERS = 20_000;
export const LISTED_CHARACTERS = 500;

/** What an agent uses of a draft, without empty fields; a credential that may not read drafts gets less. */
export function shortenDraft(draft: Answer, maxCharacters = TEXT_CHARACTERS): Answer {
  const { html_body: html, attachments_meta: attachments = [], approval } = draft;
  const text = String(draft.text_body ?? html ?? '');
  return Object.fromEntries(
    Object.entries({
      ...Object.fromEntries(Object.keys(DRAFT).map((name) => [name, draft[name]])),
      text_body: text.slice(0, maxCharacters),
      truncated: text.length > maxCharacters ? true : undefined,
      attachments: (attachments as Answer[]).map(
        ({ attachment_id: id, filename, content_type, size_bytes }) => ({
          id,
          filename,
          content_type,
          size_bytes,
        }),
      ),
      approval: approval ? shortenApproval(approval as Answer) : undefined,
    }).filter(([, value]) => !isEmpty(value)),
  );
}

function shortenApproval({ signals, alarm_message_id, expires_at, decided_at, note }: Answer): Answer {
  const shown = { signals, alarm_message_id, expires_at, decided_at, note };
  return Object.fromEntries(Object.entries(shown).filter(([, value]) => !isEmpty(value)));
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);
