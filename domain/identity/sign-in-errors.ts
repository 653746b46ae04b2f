import { AppError } from '../../platform/errors.ts';
import { RECOVERY_DAYS } from '../../workflows/deletions/purge.contract.ts';

/** The same error for a wrong password, code or token, and for an account that does not exist. */
export function invalidCredentials(): AppError {
  return new AppError('invalid_credentials', {
    detail: 'The address, password, code or token is wrong or no longer valid.',
    fix: 'Check it and try again, or start over.',
  });
}

/** As {@link invalidCredentials}, but the transaction commits, because it counts the failure or has used up a challenge. */
export function wrongCredentials(): AppError {
  const { detail, fix } = invalidCredentials();
  return new AppError('invalid_credentials', { detail, fix, commitsTransaction: true });
}

const DAY_MS = 86_400_000;

/**
 * The error for a person who has proved a sign-in to a deleted account. After the recovery period it is the same as for an
 * account that does not exist.
 */
export function accountDeleted(deletedAt: Date, now = new Date()): AppError {
  const recoverableUntil = new Date(deletedAt.getTime() + RECOVERY_DAYS * DAY_MS);
  if (recoverableUntil <= now) return invalidCredentials();
  return new AppError('account_deleted', {
    detail: `The account was deleted. It can be recovered until ${recoverableUntil.toISOString()}.`,
    fix: 'Recover it with the mailed token, or with the address and password: POST /api/v1/user/me/recover. POST /api/v1/auth/password/forgot mails another token.',
    extensions: { recoverable_until: recoverableUntil.toISOString() },
  });
}
