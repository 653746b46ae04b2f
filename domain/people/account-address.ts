import { sql } from 'kysely';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Db } from '../../platform/database/tables.ts';
import { invalid } from '../../platform/errors.ts';
import { findAddressProblem } from '../mime/mail-address.ts';

/**
 * Serializes the transactions that count and send emails to an address, or create its account. They wait whether or not the
 * address has an account: a lock on the row of the account would reveal by timing that it exists.
 *
 * @param email in lower case.
 */
export const lockAccountAddress = (db: Db, email: string): Promise<void> =>
  lockKey(db, 'account-address', email);

/** The address of a deleted account is taken, too. */
export async function isAddressTaken(db: Db, email: string): Promise<boolean> {
  const user = await db.selectFrom('users').select('id').where('email', '=', email).executeTakeFirst();
  return user !== undefined;
}

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

/** Voids the pending sign-ups of an address that its owner has just proved, because others may have begun them. */
export async function voidSignUps(db: Db, email: string): Promise<void> {
  await db
    .updateTable('sign_ups')
    .set({ used_at: sql<Date>`now()` })
    .where('email', '=', email)
    .where('used_at', 'is', null)
    .execute();
}

/** Records that a person has proved the address of their account. */
export async function markAddressVerified(db: Db, userId: string): Promise<void> {
  await db
    .updateTable('users')
    .set({ email_verified_at: sql<Date>`coalesce(email_verified_at, now())` })
    .where('id', '=', userId)
    .execute();
}
