import { isNativeError } from 'node:util/types';
import { AppError } from '../errors.ts';

const UNIQUE_VIOLATION = '23505';
const FOREIGN_KEY_VIOLATION = '23503';
/** SQLSTATE: a conflict with another transaction, or a timeout; the same request may succeed later. */
const CONTENTION_CODES = new Set([FOREIGN_KEY_VIOLATION, '40001', '40P01', '55P03', '57014']);
/** SQLSTATE: text or a time that PostgreSQL cannot store; 08P01 is a NUL in a parameter. */
const UNSTORABLE_CODES = new Set(['22P05', '22021', '22008', '22007', '08P01']);
/** SQLSTATE class 08, shutdowns, and errors of the socket or of name resolution: the server cannot be reached. */
const UNREACHABLE_CODES =
  /^(08(?!P01)...|57P0[1235]|E(?:CONN(?:REFUSED|RESET|ABORTED)|PIPE|TIMEDOUT|(?:HOST|NET)UNREACH|AI_AGAIN)|ENOTFOUND)$/;
/**
 * SQLSTATE: the server answers, but cannot do the work. Class 53 is a lack of disk space, memory or connections, 58030 an
 * I/O error, and 25006 a server that only reads, such as a standby before its promotion.
 */
const INCAPABLE_CODES = /^(53...|58030|25006)$/;
/** Errors of the driver, which have no code. */
const UNREACHABLE_MESSAGE =
  /Connection terminated|is not queryable|timeout exceeded when trying to connect|Cannot use a pool after/;

/** Also for errors of another realm, such as those of sockets within Jest. */
const isError = (value: unknown): value is Error => value instanceof Error || isNativeError(value);

/**
 * Translates a PostgreSQL error for API clients. No other code translates constraint violations.
 *
 * @returns undefined for other errors, and for those that only a bug causes.
 */
export function toDatabaseError(error: unknown): AppError | undefined {
  if (!isError(error)) return undefined;
  const code = codeOf(error);
  if (UNREACHABLE_CODES.test(code) || INCAPABLE_CODES.test(code) || UNREACHABLE_MESSAGE.test(error.message)) {
    return new AppError('unavailable', {
      // If the connection broke during a commit, the change may have been made.
      detail: 'The database is not available, and it is unknown whether the request was carried out.',
      fix: 'Repeat the request in a few seconds; for a POST, use the same Idempotency-Key.',
      headers: { 'retry-after': '5' },
      cause: error,
    });
  }
  if (isUniqueViolation(error)) {
    return new AppError('already_exists', {
      detail: 'A resource with the same unique value already exists.',
      fix: 'Use the existing one, or choose another value.',
      cause: error,
    });
  }
  if (CONTENTION_CODES.has(code)) {
    return new AppError('conflict', {
      detail: 'Another request changed the same resource at the same time.',
      fix: 'Read the current state and repeat the request.',
      cause: error,
    });
  }
  if (UNSTORABLE_CODES.has(code)) {
    return new AppError('validation_error', {
      detail: 'The request contains text or a time that cannot be stored.',
      fix: 'Remove characters that are not Unicode text, and use times in year 1 or later.',
      cause: error,
    });
  }
  return undefined;
}

/** Whether the row exists already, by the unique constraint or index of this name. */
export function isUniqueViolation(error: unknown, constraint?: string): boolean {
  if (!isError(error) || codeOf(error) !== UNIQUE_VIOLATION) return false;
  return constraint === undefined || (error as { constraint?: unknown }).constraint === constraint;
}

/** Whether PostgreSQL rejects the value for good: data exceptions (class 22) and its limits (class 54). */
export function isPermanentDataError(error: unknown): boolean {
  return error instanceof Error && /^(?:22...|54...|08P01)$/.test(codeOf(error));
}

function codeOf(error: Error): string {
  const code = (error as Error & { code?: unknown }).code;
  return typeof code === 'string' ? code : '';
}
