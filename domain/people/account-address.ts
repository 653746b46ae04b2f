import { invalid } from '../../platform/errors.ts';
import { findAddressProblem } from '../mime/address-syntax.ts';

/**
 * Normalizes the address of an account: strict ASCII, lower case, no quoting. Addresses in the service's own domains are
 * rejected, because every tenant can create inboxes there and would receive the account's emails.
 *
 * @param ownDomains the shared inbox domain and those of return paths, in lower case.
 * @throws AppError `validation_error`.
 */
export function normalizeAccountAddress(email: string, path: string, ownDomains: readonly string[]): string {
  const problem = findAddressProblem(email);
  if (problem !== undefined) throw invalid(path, problem, 'Use an address of the form name@example.com.');
  const address = email.toLowerCase();
  const domain = address.slice(address.lastIndexOf('@') + 1);
  if (ownDomains.some((own) => domain === own || domain.endsWith(`.${own}`)))
    throw invalid(path, 'must not be an address of this service', 'Use an address that you read elsewhere.');
  return address;
}

const MAX_NAME_CHARACTERS = 50;

/**
 * Checks a name that appears in emails to other people. Attackers put links into names to make the service send their
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

function findNameProblem(name: string): string | undefined {
  if (name === '') return 'must not be empty';
  if ([...name].length > MAX_NAME_CHARACTERS)
    return `must not be longer than ${MAX_NAME_CHARACTERS} characters`;
  if (/[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/u.test(name)) return 'must not contain control or formatting characters';
  if (/@|:\/\/|\bwww\.|\/|\w\.[a-z]{2,}\b/iu.test(name)) return 'must not contain an address or a link';
  return undefined;
}
