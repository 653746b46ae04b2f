import { type Static, Type } from 'typebox';
import { singleLineText } from '../../api/messages/addresses.ts';
import { MAX_SUBJECT_LENGTH } from '../../api/messages/content.schemas.ts';
import { type ContentBody, readContent } from '../../api/messages/content.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import { MAX_ATTACHMENTS } from '../../domain/attachments/attachment-limits.ts';
import type { FileToAttach } from '../../domain/attachments/stored-file.ts';
import { splitAddresses } from '../../domain/mime/mail-address.ts';
import type { OutboundContent } from '../../domain/outbound/outbound-content.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import { readLabelList } from '../messages/label-fields.ts';

export const COMPOSE_MODES = ['new', 'reply', 'reply_all', 'forward'] as const;
export type ComposeMode = (typeof COMPOSE_MODES)[number];

const MAX_ADDRESSES_LENGTH = 50 * 600;
const MAX_TEXT_LENGTH = 500_000;
const keptFile = text(1_200, { pattern: '^att_[0-9a-z]{1,60} ' });

export const ComposeBody = strictObject({
  /** Of the form as it was shown: submitting it twice sends once. */
  key: text(64, { minLength: 16 }),
  mode: enumOf(COMPOSE_MODES),
  /** The message that is answered or forwarded; empty for a new one. */
  original: text(64),
  action: enumOf(['send', 'draft']),
  to: text(MAX_ADDRESSES_LENGTH, { default: '' }),
  cc: text(MAX_ADDRESSES_LENGTH),
  bcc: text(MAX_ADDRESSES_LENGTH),
  reply_to: text(MAX_ADDRESSES_LENGTH),
  subject: singleLineText(MAX_SUBJECT_LENGTH),
  text_body: text(MAX_TEXT_LENGTH),
  labels: singleLineText(3_300),
  /** `2026-11-24T09:30` (UTC), or empty. */
  send_at: text(16, { pattern: '^(?:\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d)?$' }),
  unsubscribe: Type.Optional(enumOf(['on'])),
  include_attachments: Type.Optional(enumOf(['on'])),
  /** Files that were uploaded with the form before: id, a space, and the name. */
  attachments: Type.Optional(Type.Union([keptFile, Type.Array(keptFile, { maxItems: MAX_ATTACHMENTS })])),
});
export type ComposeForm = Static<typeof ComposeBody>;

export const keptFiles = ({ attachments }: Partial<ComposeForm>): { id: string; filename: string }[] =>
  [attachments ?? []].flat().map((kept) => {
    const [id = '', ...name] = kept.split(' ');
    return { id, filename: name.join(' ') };
  });

export const toFilesToAttach = (files: readonly { id: string }[]): FileToAttach[] =>
  files.map(({ id }) => ({ kind: 'existing', attachmentId: id, changes: {} }));

/** @throws AppError `validation_error` for addresses, labels and the text. */
export function readComposed(form: ComposeForm): OutboundContent {
  const body: ContentBody = {
    to: form.mode === 'new' || form.mode === 'forward' ? splitAddresses(form.to) : [],
    cc: splitAddresses(form.cc),
    bcc: splitAddresses(form.bcc),
    reply_to: splitAddresses(form.reply_to),
    subject: form.subject.trim() || null,
    text_body: form.text_body.replaceAll('\r\n', '\n') || null,
    labels: readLabelList('labels', form.labels),
    unsubscribe: form.unsubscribe !== undefined,
  };
  return readContent(body);
}

/** @throws AppError `validation_error`. */
export function readSendTime({ send_at: time }: ComposeForm): Date | undefined {
  if (time === '') return undefined;
  const at = new Date(`${time}:00Z`);
  if (Number.isNaN(at.getTime())) throw invalid('/body/send_at', 'is not a time', 'Choose a day and a time.');
  return at;
}

/** Where a refusal stands, which the API gives without a field. */
function fieldOf({ code, extensions }: AppError): string | undefined {
  if (code === 'no_recipients') return 'to';
  if (code === 'payload_too_large') return 'files';
  if (extensions.label !== undefined) return 'labels';
  return extensions.rejection_reason === 'blocked_recipient' ? 'to' : undefined;
}

/** The refusal of a send at the field of the form that it is about. */
export function atField(error: unknown): unknown {
  if (!(error instanceof AppError) || error.errors?.length) return error;
  const field = fieldOf(error);
  if (field === undefined) return error;
  const { code, detail, fix, extensions, commitsTransaction } = error;
  const errors = [{ path: `/body/${field}`, message: detail.replace(/\.$/, '') }];
  return new AppError(code, { detail, fix, extensions, commitsTransaction, errors });
}
