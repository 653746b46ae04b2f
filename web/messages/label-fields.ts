import { text } from '../../api/schemas.ts';
import { invalid } from '../../platform/errors.ts';

const LABELS_AT_ONCE = 50;
const MAX_LABEL_LENGTH = 64;

/** Labels of a form, with commas between them. */
export const LabelFields = { add: text(2_000, { default: '' }), remove: text(2_000, { default: '' }) };

export interface LabelChange {
  add: string[];
  remove: string[];
}

/** @throws AppError `validation_error`. */
export function readLabels(fields: { add: string; remove: string }): LabelChange {
  const change = { add: readLabelList('add', fields.add), remove: readLabelList('remove', fields.remove) };
  if (change.add.length + change.remove.length === 0)
    throw invalid('/body/add', 'names no label', 'Name a label to add or to remove.');
  return change;
}

/** Labels of a field, with commas between them. @throws AppError `validation_error`. */
export function readLabelList(field: string, value: string): string[] {
  const labels = [
    ...new Set(
      value
        .split(',')
        .map((label) => label.trim())
        .filter(Boolean),
    ),
  ];
  if (labels.length > LABELS_AT_ONCE)
    throw invalid(`/body/${field}`, `names more than ${LABELS_AT_ONCE} labels`, 'Name fewer labels.');
  const wrong = labels.find((label) => label.length > MAX_LABEL_LENGTH || /\p{Cc}/u.test(label));
  if (wrong !== undefined)
    throw invalid(
      `/body/${field}`,
      `has a label with more than ${MAX_LABEL_LENGTH} characters, or with control characters`,
      'Shorten the label.',
    );
  return labels;
}
