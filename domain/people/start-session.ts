import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { randomBase62, sha256 } from '../../platform/crypto.ts';
import { dbOf } from '../../platform/database/bridge.ts';
import type { SessionFactor, SessionMethod } from '../identity/person.ts';
import { accountDeleted, invalidCredentials } from '../identity/sign-in-errors.ts';
import { type CreatedSession, createSession } from '../sessions/create-session.ts';
import { rememberDevice } from '../sessions/known-devices.ts';
import type { MfaType } from './mfa-enrollment.entity.ts';

export { invalidCredentials, wrongCredentials } from '../identity/sign-in-errors.ts';

/** A person who has proved a first factor, or all factors. */
export interface SignIn {
  userId: string;
  method: SessionMethod;
  /** Second factors proved in this sign-in. Empty: the first factor alone. */
  factors?: readonly SessionFactor[];
  /** With the method `sso`. */
  ssoConfigurationId?: string | null;
  /** With the method `sso`: when the person proved who they are to the identity provider. Default: now. */
  authenticatedAt?: Date;
  ip: string;
  userAgent: string | null;
  /** Binds a request for the second factor to the browser; undefined for clients without cookies. */
  browserToken?: string;
  /** Of the people who have signed in with this browser; undefined for clients without cookies. */
  deviceTokens?: readonly string[];
}

/** How a person may prove the second factor. */
export type MfaMethod = MfaType | 'recovery_code';

export interface StartedSession extends CreatedSession {
  /** For the cookie of the browser, which is a known device of the person now. Empty: the cookie stays as it is. */
  deviceTokens: string[];
}

export type SignInResult =
  | { kind: 'session'; session: StartedSession; isEnrollmentOnly: boolean }
  /** The token is valid for ten minutes and five wrong codes. */
  | { kind: 'mfa_required'; mfaToken: string; methods: MfaMethod[] };

const CHALLENGE_LIFETIME_MINUTES = 10;
const MFA_TOKEN_LENGTH = 43;

interface SignInFacts {
  status: 'active' | 'suspended';
  deletedAt: string | null;
  types: MfaType[];
  isMfaRequired: boolean;
  isMfaRequiredDespiteSso: boolean;
}

/**
 * The only way to a session: sign-up, password, passkey, OAuth, SSO, invitation and recovery all end here. Asks for the
 * second factor if the person has one, and limits the session to enrolling one if an organization requires it and the
 * person has none. Runs in the caller's transaction, as the people role.
 *
 * @throws AppError `account_deleted` for a person who can recover their account; `invalid_credentials` for a suspended one,
 * and for one whose recovery period has passed.
 */
export async function startSession(em: EntityManager, signIn: SignIn): Promise<SignInResult> {
  const { userId, method, factors = [], ssoConfigurationId = null, ip, userAgent } = signIn;
  const facts = await readFacts(em, userId);
  if (facts?.status !== 'active') throw invalidCredentials();
  if (facts.deletedAt !== null && method !== 'recovery') throw accountDeleted(new Date(facts.deletedAt));
  const isProved = factors.length > 0 || method === 'passkey' || method === 'sso';
  if (!isProved && facts.types.length > 0) return challenge(em, signIn, facts.types);
  // A recovery restores the account before its session begins, and after the second factor.
  if (facts.deletedAt !== null) throw invalidCredentials();
  const isRequired = method === 'sso' ? facts.isMfaRequiredDespiteSso : facts.isMfaRequired;
  const isEnrollmentOnly =
    isRequired && factors.length === 0 && method !== 'passkey' && facts.types.length === 0;
  const session = await createSession(dbOf(em), {
    userId,
    kind: isEnrollmentOnly ? 'enroll' : 'full',
    method,
    factors,
    ssoConfigurationId,
    ...(signIn.authenticatedAt === undefined ? {} : { authenticatedAt: signIn.authenticatedAt }),
    ip,
    userAgent,
  });
  // A session that can only enroll a second factor is no complete sign-in.
  const deviceTokens = isEnrollmentOnly
    ? []
    : await rememberDevice(dbOf(em), userId, signIn.deviceTokens ?? []);
  return { kind: 'session', session: { ...session, deviceTokens }, isEnrollmentOnly };
}

/** Whether the person has a second factor, which {@link startSession} asks for after the first. */
export async function hasSecondFactor(em: EntityManager, userId: string): Promise<boolean> {
  const factors = await em.execute<object[]>(
    sql`select from mfa_enrollments where user_id = ${userId} and confirmed_at is not null limit 1`,
  );
  return factors.length > 0;
}

async function readFacts(em: EntityManager, userId: string): Promise<SignInFacts | undefined> {
  const [facts] = await em.execute<SignInFacts[]>(sql`
    select u.status, u.deleted_at as "deletedAt",
      array(select distinct e.type from mfa_enrollments e
            where e.user_id = u.id and e.confirmed_at is not null order by e.type) as types,
      exists (select from staff_members s where s.user_id = u.id)
        or exists (select from members m join organization_policies p on p.org_id = m.org_id
                     join organizations o on o.id = m.org_id and o.deleted_at is null
                   where m.user_id = u.id and p.require_mfa) as "isMfaRequired",
      exists (select from members m join organization_policies p on p.org_id = m.org_id
                join organizations o on o.id = m.org_id and o.deleted_at is null
              where m.user_id = u.id and p.require_mfa and not p.sso_satisfies_mfa) as "isMfaRequiredDespiteSso"
    from users u where u.id = ${userId}`);
  return facts;
}

async function challenge(
  em: EntityManager,
  { userId, method, ssoConfigurationId = null, browserToken }: SignIn,
  types: MfaType[],
): Promise<SignInResult> {
  const mfaToken = `mft_${randomBase62(MFA_TOKEN_LENGTH)}`;
  await em.execute(sql`
    insert into mfa_challenges (token_hash, user_id, method, sso_configuration_id, browser_token_hash, expires_at, created_at)
    values (${sha256(mfaToken)}, ${userId}, ${method}, ${ssoConfigurationId},
      ${browserToken === undefined ? null : sha256(browserToken)},
      now() + ${CHALLENGE_LIFETIME_MINUTES} * interval '1 minute', now())`);
  return { kind: 'mfa_required', mfaToken, methods: [...types, 'recovery_code'] };
}
