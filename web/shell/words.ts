import type { AppError } from '../../platform/errors.ts';

/** What a person reads at a field of a rejected form; undefined if the field is right. */
export function fieldMessage({ errors }: AppError, name: string, label: string): string | undefined {
  const found = errors?.find(({ path }) => path.split('/')[2] === name);
  return found && `${label}: ${found.message}.`;
}
