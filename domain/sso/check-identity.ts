import type { Db } from '../../platform/database/tables.ts';
import { isVerifiedDomain } from '../domains/verified-domain.ts';
import { requireSafeName } from '../identity/safe-name.ts';
import { normalizeAccountAddress } from '../people/account-address.ts';
import { redactAddress, type SsoChecks } from './sso-checks.ts';
import type { SsoClaims } from './sso-login.entity.ts';
import type { SsoSettings } from './sso-settings.ts';

/** What an identity provider says about a person, in an answer whose signature was checked. */
export interface StatedIdentity {
  issuer: string;
  subject: string;
  email: unknown;
  /** Undefined where the protocol does not say. */
  emailVerified: unknown;
  name: unknown;
  authenticatedAt: Date | null;
}

const MAX_SUBJECT_CHARACTERS = 255;
/** Clocks differ. */
const TOLERANCE_MS = 60_000;

/**
 * Checks what an identity provider says about a person. The address must be in a domain that the organization has verified
 * and the configuration lists.
 *
 * @throws SsoRefusal
 */
export async function checkIdentity(
  db: Db,
  settings: Pick<SsoSettings, 'organizationId' | 'domains'>,
  { identity, ownDomains }: { identity: StatedIdentity; ownDomains: readonly string[] },
  checks: SsoChecks,
): Promise<SsoClaims> {
  const { issuer, subject } = identity;
  const isSubject =
    subject !== '' && subject.length <= MAX_SUBJECT_CHARACTERS && !/[\p{Cc}\p{Cs}]/u.test(subject);
  checks.require(
    'subject',
    isSubject,
    `${subject.length} characters`,
    `1 to ${MAX_SUBJECT_CHARACTERS}, no control characters`,
  );
  const email = readAddress(identity.email, ownDomains);
  if (email === undefined) return checks.fail('email', redactAddress(identity.email), 'name@example.com');
  checks.pass('email', redactAddress(email));
  const { emailVerified } = identity;
  const isVerified = emailVerified === undefined || emailVerified === true || emailVerified === 'true';
  checks.require('email_verified', isVerified, emailVerified ?? 'not stated', true);
  const domain = email.slice(email.lastIndexOf('@') + 1);
  checks.require('domain', settings.domains.includes(domain), domain, settings.domains.join(', '));
  const isOwned = await isVerifiedDomain(db, settings.organizationId, domain);
  checks.require('domain_verified', isOwned, domain, 'a verified domain of the organization');
  return {
    issuer,
    subject,
    email,
    name: readName(identity.name),
    authenticatedAt: identity.authenticatedAt?.toISOString() ?? null,
  };
}

/** If the identity provider was asked to have the person sign in again, it must confirm that the person did. */
export function checkFreshness(
  { isFresh, createdAt }: { isFresh: boolean; createdAt: Date },
  authenticatedAt: Date | null,
  checks: SsoChecks,
): void {
  if (!isFresh) return;
  const passed = authenticatedAt !== null && authenticatedAt.getTime() >= createdAt.getTime() - TOLERANCE_MS;
  checks.require(
    'authentication_time',
    passed,
    authenticatedAt?.toISOString() ?? 'not stated',
    `after ${createdAt.toISOString()}`,
  );
}

function readAddress(email: unknown, ownDomains: readonly string[]): string | undefined {
  if (typeof email !== 'string') return undefined;
  try {
    return normalizeAccountAddress(email, '/email', ownDomains);
  } catch {
    return undefined;
  }
}

/** Names appear in emails to other people, so an unsafe name is left out. */
function readName(name: unknown): string | null {
  if (typeof name !== 'string') return null;
  try {
    return requireSafeName(name, '/name');
  } catch {
    return null;
  }
}
