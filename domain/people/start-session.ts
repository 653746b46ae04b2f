import { type ExpressionBuilder, sql } from 'kysely';
import { randomBase62, sha256 } from '../../platform/crypto.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import type { SessionFactor, SessionMethod } from '../identity/person.ts';
import { accountDeleted, invalidCredentials } from '../identity/sign-in-errors.ts';
import { type CreatedSession, createSession } from '../sessions/create-session.ts';
import { rememberDevice } from '../sessions/known-devices.ts';
import type { MfaType } from './sign-in.entity.ts';

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
  /** For the cookie of the browser, which is now a known device of the person. Empty: the cookie stays as it is. */
  deviceTokens: string[];
}

export type SignInResult =
  | { kind: 'session'; session: StartedSession; isEnrollmentOnly: boolean }
  /** The token is valid for ten minutes and five wrong codes. */
  | { kind: 'mfa_required'; mfaToken: string; methods: MfaMethod[] };

const CHALLENGE_LIFETIME_MINUTES = 10;
const MFA_TOKEN_LENGTH = 43;

/**
 * The only way to start a session: sign-up, password, passkey, OAuth, SSO, invitation and recovery all end here. Asks for
 * the second factor if the person has one, and limits the session to enrolling one if an organization requires it and the
 * person has none. Runs in the caller's transaction, as the people role.
 *
 * @throws AppError `account_deleted` for a person who can recover their account; `invalid_credentials` for a suspended
 * person, and after the recovery period.
 */
export async function startSession(db: Db, signIn: SignIn): Promise<SignInResult> {
  const { userId, method, factors = [], ssoConfigurationId = null, ip, userAgent } = signIn;
  const facts = await readFacts(db, userId);
  if (facts?.status !== 'active') throw invalidCredentials();
  if (facts.deletedAt !== null && method !== 'recovery') throw accountDeleted(facts.deletedAt);
  const isProved = factors.length > 0 || method === 'passkey' || method === 'sso';
  if (!isProved && facts.types.length > 0) return challenge(db, signIn, facts.types);
  // A recovery restores the account before its session begins, and after the second factor.
  if (facts.deletedAt !== null) throw invalidCredentials();
  const isRequired = method === 'sso' ? facts.isMfaRequiredDespiteSso : facts.isMfaRequired;
  const isEnrollmentOnly =
    isRequired && factors.length === 0 && method !== 'passkey' && facts.types.length === 0;
  const session = await createSession(db, {
    userId,
    kind: isEnrollmentOnly ? 'enroll' : 'full',
    method,
    factors,
    ssoConfigurationId,
    ...(signIn.authenticatedAt === undefined ? {} : { authenticatedAt: signIn.authenticatedAt }),
    ip,
    userAgent,
  });
  // A session that can only enroll a second factor is not a complete sign-in.
  const deviceTokens = isEnrollmentOnly ? [] : await rememberDevice(db, userId, signIn.deviceTokens ?? []);
  return { kind: 'session', session: { ...session, deviceTokens }, isEnrollmentOnly };
}

/** Whether the person has a second factor, which {@link startSession} asks for after the first. */
export async function hasSecondFactor(db: Db, userId: string): Promise<boolean> {
  const factor = await db
    .selectFrom('mfa_enrollments')
    .select('id')
    .where('user_id', '=', userId)
    .where('confirmed_at', 'is not', null)
    .limit(1)
    .executeTakeFirst();
  return factor !== undefined;
}

function readFacts(db: Db, userId: string) {
  return db
    .selectFrom('users')
    .select((eb) => [
      'users.status',
      'users.deleted_at as deletedAt',
      sql<MfaType[]>`array(${eb
        .selectFrom('mfa_enrollments')
        .select('type')
        .distinct()
        .whereRef('user_id', '=', 'users.id')
        .where('confirmed_at', 'is not', null)
        .orderBy('type')})`.as('types'),
      eb
        .or([
          eb.exists(eb.selectFrom('staff_members').select('user_id').whereRef('user_id', '=', 'users.id')),
          eb.exists(policiesThatRequireMfa(eb)),
        ])
        .$castTo<boolean>()
        .as('isMfaRequired'),
      eb
        .exists(policiesThatRequireMfa(eb).where('organization_policies.sso_satisfies_mfa', '=', false))
        .$castTo<boolean>()
        .as('isMfaRequiredDespiteSso'),
    ])
    .where('users.id', '=', userId)
    .executeTakeFirst();
}

/** Policies of the open organizations of the user in the statement. */
function policiesThatRequireMfa(eb: ExpressionBuilder<Tables, 'users'>) {
  return eb
    .selectFrom('members')
    .innerJoin('organization_policies', 'organization_policies.org_id', 'members.org_id')
    .innerJoin('organizations', 'organizations.id', 'members.org_id')
    .select('members.org_id')
    .whereRef('members.user_id', '=', 'users.id')
    .where('organizations.deleted_at', 'is', null)
    .where('organization_policies.require_mfa', '=', true);
}

async function challenge(
  db: Db,
  { userId, method, ssoConfigurationId = null, browserToken }: SignIn,
  types: MfaType[],
): Promise<SignInResult> {
  const mfaToken = `mft_${randomBase62(MFA_TOKEN_LENGTH)}`;
  await db
    .insertInto('mfa_challenges')
    .values({
      token_hash: sha256(mfaToken),
      user_id: userId,
      method,
      sso_configuration_id: ssoConfigurationId,
      browser_token_hash: browserToken === undefined ? null : sha256(browserToken),
      expires_at: sql<Date>`now() + make_interval(mins => ${CHALLENGE_LIFETIME_MINUTES})`,
      used_at: null,
    })
    .execute();
  return { kind: 'mfa_required', mfaToken, methods: [...types, 'recovery_code'] };
}
