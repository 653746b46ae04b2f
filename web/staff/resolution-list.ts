import type { StaffJobItem } from '../../domain/workflow-runs/staff-job.entity.ts';
import { invalid } from '../../platform/errors.ts';

const MAX_LINES = 1_000;
const MAX_LINE_CHARACTERS = 1_020;
export const MAX_LIST_CHARACTERS = MAX_LINES * MAX_LINE_CHARACTERS;
const LINE =
  /^(?<message>\S{1,1000})\s+(?<resolution>sent|resend)(?:\s+(?:(?<recipient>\d{1,4})|(?<email>[^\s@]+@[^\s@]+)))?$/;

/**
 * Reads a list that was made from the relay's log: on each line a message, the decision, and optionally the recipient, by
 * address or number.
 *
 * @throws AppError `validation_error` naming the first line that cannot be read.
 */
export function readResolutionList(list: string): StaffJobItem[] {
  const lines = list
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
  if (lines.length === 0 || lines.length > MAX_LINES)
    throw rejected(`The list has ${lines.length} lines; it needs between 1 and ${MAX_LINES}.`);
  return lines.map((line, index) => {
    const { message, resolution, recipient, email } = LINE.exec(line)?.groups ?? {};
    if (message === undefined || (resolution !== 'sent' && resolution !== 'resend'))
      throw rejected(`Line ${index + 1} cannot be read.`);
    return {
      message,
      resolution,
      ...(recipient === undefined ? {} : { recipient: Number(recipient) }),
      ...(email === undefined ? {} : { email }),
    };
  });
}

const rejected = (message: string) =>
  invalid(
    '/body/list',
    message,
    'Write a Message-ID, then sent or resend, then the address of the recipient if they differ.',
  );
