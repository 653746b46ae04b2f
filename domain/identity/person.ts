import { AppError } from '../../platform/errors.ts';

/** What a session proved when it began. `passkey`: WebAuthn with user verification, without a password. */
export type SessionMethod = 'sign_up' | 'password' | 'passkey' | 'oauth' | 'sso' | 'invitation' | 'recovery';

/** A second factor that a session proved. */
export type SessionFactor = 'totp' | 'webauthn' | 'recovery_code';

/**
 * `full`: everything the role allows. `enroll`: a policy requires a second factor and the person has none yet, so the
 * session can only enroll one.
 */
export type SessionKind = 'full' | 'enroll';

/** A signed-in person: the session that made a request. */
export interface Person {
  userId: string;
  sessionId: string;
  kind: SessionKind;
  method: SessionMethod;
  factors: readonly SessionFactor[];
  /** The SSO configuration that signed the person in; null for other methods. */
  ssoConfigurationId: string | null;
  /** When the person last proved who they are. */
  authenticatedAt: Date;
  ip: string;
  requestId: string;
}

/** How long after signing in a person may change factors, password and the like without signing in again. */
export const FRESH_LOGIN_MS = 10 * 60_000;

/** @throws AppError `session_expired` unless the person signed in within the last ten minutes. */
export function requireFreshLogin(person: Pick<Person, 'authenticatedAt'>): void {
  if (isFreshLogin(person)) return;
  throw new AppError('session_expired', {
    detail: 'This change requires that you signed in within the last ten minutes.',
    fix: 'Sign in again, and repeat the request with the new session.',
    headers: { 'www-authenticate': 'Bearer' },
  });
}

export function isFreshLogin(
  { authenticatedAt }: Pick<Person, 'authenticatedAt'>,
  now = new Date(),
): boolean {
  return now.getTime() - authenticatedAt.getTime() <= FRESH_LOGIN_MS;
}
