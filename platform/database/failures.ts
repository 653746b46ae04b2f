import {
  ConnectionException,
  ForeignKeyConstraintViolationException,
  UniqueConstraintViolationException,
} from '@mikro-orm/core';
import { AppError } from '../errors.ts';

/** SQLSTATE: another transaction was in the way, and the same request may pass the next time. */
const CONTENTION = new Set(['40001', '40P01', '55P03', '57014']);
/** SQLSTATE: text or a time that PostgreSQL cannot store; NUL in a parameter breaks its protocol. */
const UNSTORABLE = new Set(['22P05', '22021', '22008', '22007', '08P01']);
/** SQLSTATE class 08, shutdowns, too many connections, and what the socket says. */
const UNREACHABLE =
  /^(08(?!P01)...|57P0[123]|53300|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EHOSTUNREACH)$/;
/** pg gives these no code. */
const UNREACHABLE_MESSAGE =
  /Connection terminated|timeout exceeded when trying to connect|Cannot use a pool after/;

/**
 * What a failure of PostgreSQL means to a caller; the one place where constraints are translated.
 *
 * @returns undefined for an error that is not PostgreSQL's, or that only a bug explains.
 */
export function databaseFailure(error: unknown): AppError | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = codeOf(error);
  if (
    error instanceof ConnectionException ||
    UNREACHABLE.test(code) ||
    UNREACHABLE_MESSAGE.test(error.message)
  ) {
    return new AppError('unavailable', {
      detail: 'The database is not available; nothing was half done.',
      fix: 'Repeat the request in a few seconds, a POST with the same Idempotency-Key.',
      headers: { 'retry-after': '5' },
      cause: error,
    });
  }
  if (error instanceof UniqueConstraintViolationException) {
    return new AppError('already_exists', {
      detail: 'Something with the same unique value exists already.',
      fix: 'Look for the existing one, or choose another value.',
      cause: error,
    });
  }
  if (error instanceof ForeignKeyConstraintViolationException || CONTENTION.has(code)) {
    return new AppError('conflict', {
      detail: 'Another request changed the same thing at the same time.',
      fix: 'Read the current state and repeat the request.',
      cause: error,
    });
  }
  if (UNSTORABLE.has(code)) {
    return new AppError('validation_error', {
      detail: 'The request holds text or a time that cannot be stored.',
      fix: 'Remove characters that are not Unicode text, and use times from year 1 on.',
      cause: error,
    });
  }
  return undefined;
}

/** Whether PostgreSQL will never take the value, however often it is asked: data exceptions and its own limits. */
export function refusesValue(error: unknown): boolean {
  return error instanceof Error && /^(?:22...|54...|08P01)$/.test(codeOf(error));
}

function codeOf(error: Error): string {
  const code = (error as Error & { code?: unknown }).code;
  return typeof code === 'string' ? code : '';
}
