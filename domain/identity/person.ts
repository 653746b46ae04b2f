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
  /**
   * Whether the session may change the account itself. A session from an organization's single sign-on may not if the
   * account has another way to sign in or belongs to other organizations, because the organization vouches for its member
   * and not for the whole account.
   */
  managesAccount: boolean;
  /** When the person last proved who they are. */
  authenticatedAt: Date;
  /** When the session expires. */
  sessionExpiresAt: Date;
  ip: string;
  requestId: string;
}

/** How long after signing in a person may change factors, password and the like without signing in again. */
export const FRESH_LOGIN_MS = 10 * 60_000;

type SignedInPerson = Pick<Person, 'authenticatedAt' | 'managesAccount'>;

/**
 * For changes of the account: its factors, sign-in methods, address and deletion.
 *
 * @throws AppError `session_expired` unless the person signed in within the last ten minutes, with a session that may change
 * the account.
 */
export function requireFreshLogin(person: SignedInPerson): void {
  if (!person.managesAccount)
    throw new AppError('session_expired', {
      detail: 'The single sign-on of one organization does not allow changes of your whole account.',
      fix: 'Sign in with your password, passkey or provider, and repeat the request with the new session.',
      headers: { 'www-authenticate': 'Bearer' },
    });
  requireRecentSignIn(person);
}

/**
 * For changes of an organization that its owners confirm by signing in.
 *
 * @throws AppError `session_expired` unless the person signed in within the last ten minutes.
 */
export function requireRecentSignIn({ authenticatedAt }: Pick<Person, 'authenticatedAt'>): void {
  if (isRecent(authenticatedAt)) return;
  throw new AppError('session_expired', {
    detail: 'This change requires that you signed in within the last ten minutes.',
    fix: 'Sign in again, and repeat the request with the new session.',
    headers: { 'www-authenticate': 'Bearer' },
  });
}

function isRecent(authenticatedAt: Date): boolean {
  return Date.now() - authenticatedAt.getTime() <= FRESH_LOGIN_MS;
}

/** The client of a request without a session. */
export interface Client {
  ip: string;
  userAgent: string | null;
  requestId: string;
  /** Value of the cookie that pages set; undefined for clients without cookies. */
  browserToken?: string;
  /** Tokens of the people who have signed in with this browser; undefined for clients without cookies. */
  deviceTokens?: readonly string[];
}
