import { type Static, Type } from 'typebox';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { Draft } from '../../domain/drafts/draft.entity.ts';
import type { DraftInput } from '../../domain/drafts/draft.service.ts';
import { compareTexts, type DifferenceLine } from '../../domain/drafts/text-difference.ts';
import { invalid } from '../../platform/errors.ts';
import { MAX_RECIPIENTS_LENGTH, readRecipients, writeRecipients } from './recipients.ts';

/** A longer text does not fit into a form; the API takes it. */
export const MAX_EDITABLE_CHARACTERS = 100_000;

export const DraftForm = strictObject({
  version: Type.Unsafe<string>({ type: 'string', maxLength: 9, pattern: '^[1-9]\\d*$' }),
  to: text(MAX_RECIPIENTS_LENGTH),
  cc: text(MAX_RECIPIENTS_LENGTH),
  bcc: text(MAX_RECIPIENTS_LENGTH),
  subject: text(998, { pattern: '^[^\\u0000-\\u001f\\u007f]*$' }),
  // Browsers send line breaks as two characters.
  text_body: text(2 * MAX_EDITABLE_CHARACTERS),
  send_at: text(30),
  text_only: Type.Optional(Type.Literal('on')),
  intent: enumOf(['save', 'send']),
});
export type DraftForm = Static<typeof DraftForm>;

/** The fields of the form with what the draft has. */
export const toFields = (draft: Draft) => ({
  to: writeRecipients(draft.to),
  cc: writeRecipients(draft.cc),
  bcc: writeRecipients(draft.bcc),
  subject: draft.subject ?? '',
  text_body: draft.textBody ?? '',
  send_at: draft.sendAt?.toISOString().slice(0, 16) ?? '',
});
export type FormFields = ReturnType<typeof toFields>;

const withPlainLineBreaks = (value: string) => value.replaceAll(/\r\n?/g, '\n');

/**
 * What the form changes of a draft.
 *
 * @throws AppError `validation_error` at the field.
 */
export function readChanges(form: DraftForm, draft: Draft): DraftInput {
  const before = toFields(draft);
  const recipients = readRecipients(form);
  const body = withPlainLineBreaks(form.text_body);
  const isChanged = (field: 'to' | 'cc' | 'bcc') => writeRecipients(recipients[field]) !== before[field];
  return {
    ...(isChanged('to') ? { to: recipients.to } : {}),
    ...(isChanged('cc') ? { cc: recipients.cc } : {}),
    ...(isChanged('bcc') ? { bcc: recipients.bcc } : {}),
    ...(form.subject === before.subject ? {} : { subject: form.subject || null }),
    ...(body === withPlainLineBreaks(before.text_body) ? {} : { textBody: body || null }),
    ...(form.text_only === 'on' && draft.htmlBody !== null ? { htmlBody: null } : {}),
    ...(form.send_at === before.send_at ? {} : { sendAt: readTime(form.send_at) }),
  };
}

function readTime(value: string): Date | null {
  if (value === '') return null;
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/.test(value)
    ? new Date(`${value}Z`)
    : new Date(Number.NaN);
  if (Number.isNaN(time.getTime()) || time.getUTCFullYear() > 9999)
    throw invalid('/body/send_at', 'is not a time', 'Choose a date and a time.');
  if (time.getTime() <= Date.now())
    throw invalid('/body/send_at', 'is in the past', 'Choose a later time, or leave it empty.');
  return time;
}

const LABELS: Record<keyof FormFields, string> = {
  to: 'To',
  cc: 'Cc',
  bcc: 'Bcc',
  subject: 'Subject',
  text_body: 'Text',
  send_at: 'Send at (UTC)',
};

/** Where the saved draft and a form differ, so that a person who was overtaken sees both. */
export function compareWithForm(
  draft: Draft,
  form: Partial<FormFields>,
): { label: string; lines: DifferenceLine[] }[] {
  const saved = toFields(draft);
  return (Object.keys(LABELS) as (keyof FormFields)[])
    .map((field) => ({
      label: LABELS[field],
      lines: compareTexts(
        withPlainLineBreaks(saved[field]),
        withPlainLineBreaks(String(form[field] ?? saved[field])),
      ),
    }))
    .filter(({ lines }) => lines.length > 0);
}
