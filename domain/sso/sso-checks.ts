import { storableText } from '../../platform/database/storable.ts';
import { AppError } from '../../platform/errors.ts';

/** The checks that a login through SSO must pass, in order, as far as they apply. */
export const SSO_CHECKS = {
  provider: 'The identity provider could not be reached, or its metadata is wrong.',
  response: 'The identity provider answered with an error, or its answer is malformed.',
  idp_initiated: 'The login began at the identity provider, which the configuration does not allow.',
  encryption: 'The assertion is encrypted, which is not supported.',
  unsigned: 'Neither the answer nor its assertion is signed.',
  signature: 'The answer is not signed with a key of the identity provider.',
  algorithm: 'The answer is signed with an algorithm that is not accepted.',
  status: 'The identity provider reports a status other than success.',
  issuer: 'The answer comes from another issuer.',
  audience: 'The answer is meant for another application.',
  destination: 'The answer is meant for another address.',
  recipient: 'The answer is meant for another address.',
  confirmation: 'The answer does not say that its bearer may use it.',
  request: 'The answer does not belong to the request of this browser.',
  nonce: 'The answer does not belong to the request of this browser.',
  time: 'The answer has expired, or is not valid yet.',
  replay: 'The answer has been used before.',
  authentication_time: 'The identity provider did not ask the person again.',
  subject: 'The answer does not name the person.',
  email: 'The answer has no usable email address.',
  email_verified: 'The identity provider has not verified the email address.',
  domain: 'The domain of the email address is not among those of the configuration.',
  domain_verified: 'The organization has not verified the domain of the email address.',
  account: 'The person may not sign in to the organization.',
} as const;
export type SsoCheckName = keyof typeof SSO_CHECKS;

export interface SsoCheck {
  name: SsoCheckName;
  passed: boolean;
  /** Redacted; null if there is nothing to show. */
  seen: string | null;
  expected: string | null;
}

const MAX_VALUE_CHARACTERS = 300;
const MAX_CHECKS = 40;

/** A login that was refused, and the check that refused it. */
export class SsoRefusal extends Error {
  readonly check: SsoCheckName;
  constructor(check: SsoCheckName) {
    super(SSO_CHECKS[check]);
    this.check = check;
  }
}

/** The key of the signature is unknown. The identity provider may have published it since its keys were read. */
export class UnknownKey extends SsoRefusal {
  constructor() {
    super('signature');
  }
}

/** The checks of one login, for the list of attempts. */
export interface SsoChecks {
  readonly all: SsoCheck[];
  pass(name: SsoCheckName, seen?: unknown, expected?: unknown): void;
  /** @throws SsoRefusal always. */
  fail(name: SsoCheckName, seen?: unknown, expected?: unknown): never;
  /** @param seen the value that was checked, whether or not it passes. @throws SsoRefusal unless `passed`. */
  require(name: SsoCheckName, passed: boolean, seen?: unknown, expected?: unknown): void;
  /** @throws UnknownKey always. */
  failKey(seen: unknown, expected: unknown): never;
  /** Forgets the checks after the first `count`, because the answer is read once more with other keys. */
  restart(count: number): void;
}

export function createSsoChecks(): SsoChecks {
  const all: SsoCheck[] = [];
  const add = (name: SsoCheckName, passed: boolean, seen: unknown, expected: unknown) => {
    if (all.length < MAX_CHECKS) all.push({ name, passed, seen: toText(seen), expected: toText(expected) });
  };
  return {
    all,
    pass: (name, seen, expected) => add(name, true, seen, expected),
    fail(name, seen, expected) {
      add(name, false, seen, expected);
      throw new SsoRefusal(name);
    },
    require(name, passed, seen, expected) {
      add(name, passed, seen, expected);
      if (!passed) throw new SsoRefusal(name);
    },
    failKey(seen, expected) {
      add('signature', false, seen, expected);
      throw new UnknownKey();
    },
    restart: (count) => void all.splice(count),
  };
}

function toText(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  return storableText(text, MAX_VALUE_CHARACTERS);
}

/** Shows enough of an address to recognize it: `a…@example.com`. */
export function redactAddress(email: unknown): string | null {
  if (typeof email !== 'string') return email === undefined || email === null ? null : typeof email;
  const at = email.lastIndexOf('@');
  return at < 1 ? `${email.slice(0, 1)}…` : `${email.slice(0, 1)}…${email.slice(at)}`;
}

/** The error of a refused login. It names the check; the values are in the list of attempts. */
export function ssoFailed(check: SsoCheckName): AppError {
  return new AppError('sso_failed', {
    detail: SSO_CHECKS[check],
    fix: 'Start the sign-in again. If it keeps failing, an administrator sees the reason at GET /api/v1/org/sso/{id}/attempts.',
    extensions: { check },
  });
}

/**
 * The error of a test that cannot begin. The configuration is at fault, not the administrator's session. The error shows the
 * values, because only those who may change the configuration see it.
 */
export function ssoTestFailed(check: SsoCheckName, checks: readonly SsoCheck[]): AppError {
  const { seen = null, expected = null } = checks.findLast(({ name }) => name === check) ?? {};
  return new AppError('unprocessable', {
    detail: seen === null ? SSO_CHECKS[check] : `${SSO_CHECKS[check]} Seen: ${seen}`,
    fix: 'Correct the configuration (PATCH /api/v1/org/sso/{id}) or the identity provider, and test again. GET /api/v1/org/sso/{id}/attempts lists every check.',
    extensions: {
      check,
      ...(seen === null ? {} : { seen }),
      ...(expected === null ? {} : { expected }),
    },
  });
}

/** The same error for an unknown, used or expired transaction, and for one of another browser. */
export function ssoNotStarted(): AppError {
  return new AppError('sso_failed', {
    detail: 'The sign-in was not started in this browser, is older than ten minutes, or has been used.',
    fix: 'Start the sign-in again, in one browser that accepts cookies.',
  });
}
