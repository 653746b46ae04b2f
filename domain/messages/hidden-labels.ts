import { sql } from 'kysely';
import { AppError } from '../../platform/errors.ts';

/** A message with one of these labels has no event and is listed only if a request asks for the label. */
export const HIDDEN_LABELS = ['spam', 'blocked'] as const;

/** Excludes hidden messages from lists. Requests for a hidden label use the search index instead. */
export const IS_VISIBLE = sql<boolean>`not labels && ${[...HIDDEN_LABELS]}::text[]`;

export function isHidden(labels: readonly string[]): boolean {
  return HIDDEN_LABELS.some((label) => labels.includes(label));
}

/** Labels that state what the service found; a client can remove them but not add them. */
const SERVICE_LABELS = ['blocked', 'unauthenticated'] as const;

/** @throws AppError `unprocessable` if a client adds a label of the service to a message. */
export function rejectServiceLabels(labels: readonly string[]): void {
  rejectLabels(labels, SERVICE_LABELS);
}

/**
 * @throws AppError `unprocessable` if a client sends a message with a label of received mail, which could hide the
 * message.
 */
export function rejectReceivedLabels(labels: readonly string[]): void {
  rejectLabels(labels, [...HIDDEN_LABELS, ...SERVICE_LABELS]);
}

function rejectLabels(labels: readonly string[], reserved: readonly string[]): void {
  const found = labels.find((label) => reserved.includes(label));
  if (found === undefined) return;
  throw new AppError('unprocessable', {
    detail: `The label ${found} is set by the service.`,
    fix: `Use another label than ${[...new Set(reserved)].join(', ')}.`,
    extensions: { label: found },
  });
}
