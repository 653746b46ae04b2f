import { invalid } from '../../platform/errors.ts';

const MAX_NAME_CHARACTERS = 50;

/**
 * Checks a name that appears in emails to other people. Attackers put links into names to make the service send
 * advertisements.
 *
 * @throws AppError `validation_error`.
 */
export function requireSafeName(name: string, path: string): string {
  const trimmed = name.normalize('NFC').replace(/\s+/gu, ' ').trim();
  const problem = findNameProblem(trimmed);
  if (problem !== undefined) throw invalid(path, problem, 'Use a plain name.');
  return trimmed;
}

/** Whether a name may appear in emails to other people. */
export const isSafeName = (name: string): boolean => findNameProblem(name) === undefined;

function findNameProblem(name: string): string | undefined {
  if (name === '') return 'must not be empty';
  if ([...name].length > MAX_NAME_CHARACTERS)
    return `must not be longer than ${MAX_NAME_CHARACTERS} characters`;
  if (/[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/u.test(name)) return 'must not contain control or formatting characters';
  if (/@|:\/\/|\bwww\.|\/|\w\.[a-z]{2,}\b/iu.test(name)) return 'must not contain an address or a link';
  return undefined;
}
