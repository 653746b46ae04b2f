import { sql } from 'kysely';
import { hashOneTimeToken } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { findSuspension, unauthenticated } from '../identity/authentication.ts';
import type { PasswordHashing } from '../identity/password.ts';
import type { Client, Person } from '../identity/person.ts';
import { findRequesterProblem } from '../identity/requester.ts';
import { type MemberRole, ROLE_PERMISSIONS } from '../identity/roles.ts';
import { requireSafeName } from '../identity/safe-name.ts';
import type { Actor } from '../identity/scope.ts';
import { invalidCredentials } from '../identity/sign-in-errors.ts';
import { addMember } from '../organizations/members.ts';
import { lockAccountAddress, markAddressVerified, voidSignUps } from '../people/account-address.ts';
import type { OwnerNotices } from '../people/owner-notices.ts';
import { requireStrongPassword } from '../people/password-rules.ts';
import type { SignedIn } from '../people/sign-in.service.ts';
import { startSession } from '../people/start-session.ts';
import { createUser } from '../people/users.ts';
import { type InvitationStatus, statusOf } from './invitation.entity.ts';

export interface Acceptance {
  token: string;
  /** Name for a new account. */
  name?: string;
  password?: string;
}

/** The session of the request, of a person who has an account. */
export interface PresentSession {
  person: Person;
  token: string;
}

/** What a page shows to the holder of the token. */
export interface InvitationPreview {
  email: string;
  organizationName: string;
  role: MemberRole;
  /** The account with the address, whose session is needed to accept; null if there is none. */
  userId: string | null;
}

export type AcceptInvitationService = ReturnType<typeof createAcceptInvitationService>;

interface FoundInvitation {
  id: string;
  organizationId: string;
  organizationName: string;
  organizationStatus: 'active' | 'suspended';
  email: string;
  role: MemberRole;
  acceptedAt: Date | null;
  revokedAt: Date | null;
  expiresAt: Date;
  invitedByUserId: string | null;
  invitedByKeyId: string | null;
  userId: string | null;
  isUserDeleted: boolean;
}

export function createAcceptInvitationService({
  database,
  ownerNotices,
  passwordHashing,
}: {
  database: Database;
  passwordHashing: PasswordHashing;
  ownerNotices: Pick<OwnerNotices, 'ownerJoined'>;
}) {
  return {
    /** Changes nothing. @throws AppError `invalid_credentials` or `conflict`, as {@link accept}. */
    async preview(token: string): Promise<InvitationPreview> {
      const { email, organizationName, role, userId } = await findPending(database, token);
      return { email, organizationName, role, userId };
    },

    /**
     * Makes the owner of the invited address a member. If the address has an account, the request needs a session of that
     * account, which stays. Otherwise the account is created with the given password and signed in.
     *
     * @param session undefined if the request has none.
     * @throws AppError `invalid_credentials` for an unknown token; `conflict` for an invitation that was used or revoked,
     * has expired, or whose inviter may no longer invite, and if the address has an account but the request has no session;
     * `permission_denied` for a session of another account; `validation_error` for a missing or weak password.
     */
    async accept(
      input: Acceptance,
      client: Client,
      session?: PresentSession,
    ): Promise<SignedIn & { organizationId: string }> {
      const invitation = await findPending(database, input.token);
      const newUser = session
        ? undefined
        : await prepareUser(passwordHashing, invitation, { ...input, ip: client.ip });
      if (session) requireOwnInvitation(invitation, session, input);
      return database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        if (newUser) await lockAccountAddress(db, invitation.email);
        await claim(db, invitation);
        const userId = newUser ? await createUser(db, newUser) : await requireUser(db, invitation, session);
        const { id, organizationId, role } = invitation;
        await db
          .updateTable('invitations')
          .set({ accepted_by_user_id: userId })
          .where('id', '=', id)
          .execute();
        const isNewMember = await addMember(db, { organizationId, userId, role });
        await voidSignUps(db, invitation.email);
        await markAddressVerified(db, userId);
        await recordAudit(
          db,
          { organizationId, actor: { kind: 'user', id: userId }, ...client },
          { action: 'invitation.accepted', resourceType: 'invitation', resourceId: id, details: { role } },
        );
        if (isNewMember && role === 'owner')
          await ownerNotices.ownerJoined(
            transaction,
            { organizationId, actor: { kind: 'user', id: userId }, ip: client.ip },
            { owner: invitation.email, inviter: await describeInviter(db, id) },
          );
        const signIn = session
          ? await keepSession(db, session)
          : await startSession(db, { userId, method: 'invitation', ...client });
        return { userId, organizationId, signIn };
      });
    },
  };
}

async function findPending(database: Database, token: string): Promise<FoundInvitation> {
  const found = await database.peopleTransaction(({ db }) => findByToken(db, token));
  if (!found) throw invalidCredentials();
  const status = statusOf(found);
  if (status !== 'pending') throw notPending(status);
  const suspension = findSuspension({
    organizationStatus: found.organizationStatus,
    environmentStatus: null,
  });
  if (suspension) throw suspension;
  return found;
}

function findByToken(db: Db, token: string): Promise<FoundInvitation | undefined> {
  return db
    .selectFrom('invitations as i')
    .innerJoin('organizations as o', (join) =>
      join.onRef('o.id', '=', 'i.org_id').on('o.deleted_at', 'is', null),
    )
    .leftJoin('users as u', 'u.email', 'i.email')
    .select((eb) => [
      'i.id',
      'i.org_id as organizationId',
      'o.name as organizationName',
      'o.status as organizationStatus',
      'i.email',
      'i.role',
      'i.accepted_at as acceptedAt',
      'i.revoked_at as revokedAt',
      'i.expires_at as expiresAt',
      'i.invited_by_user_id as invitedByUserId',
      'i.invited_by_key_id as invitedByKeyId',
      'u.id as userId',
      eb('u.deleted_at', 'is not', null).$castTo<boolean>().as('isUserDeleted'),
    ])
    .where('i.token_hash', '=', hashOneTimeToken(token))
    .executeTakeFirst();
}

/** The token proves the address. It never signs in to an existing account or changes its password. */
async function prepareUser(
  passwordHashing: PasswordHashing,
  { email, userId, isUserDeleted }: FoundInvitation,
  { name, password, ip }: Acceptance & { ip: string },
): Promise<Parameters<typeof createUser>[1]> {
  if (userId !== null)
    throw new AppError('conflict', {
      detail: isUserDeleted
        ? 'The account with this address was deleted, and can still be recovered.'
        : 'This address has an account.',
      fix: isUserDeleted
        ? 'Recover the account first, then accept the invitation while signed in.'
        : 'Sign in with it, and repeat the request with Authorization: Bearer <session token>, without a password.',
    });
  if (password === undefined)
    throw invalid('/body/password', 'is required for a new account', 'Choose a password for the account.');
  const safeName = name === undefined ? null : requireSafeName(name, '/body/name');
  requireStrongPassword(password, '/body/password', [email, safeName ?? '']);
  return {
    email,
    name: safeName,
    passwordHash: await passwordHashing.hash(password, ip),
    emailVerifiedAt: new Date(),
  };
}

function requireOwnInvitation(
  { userId }: FoundInvitation,
  { person }: PresentSession,
  { name, password }: Acceptance,
): void {
  if (userId !== person.userId)
    throw new AppError('permission_denied', {
      detail: 'The invitation is for a different address than that of your account.',
      fix: 'Sign in with the account of the invited address, or send the request without a session to create it.',
    });
  const given = name === undefined ? (password === undefined ? undefined : 'password') : 'name';
  if (given !== undefined)
    throw invalid(
      `/body/${given}`,
      'must be omitted, because you have an account',
      'An invitation does not change your account.',
    );
}

/** Uses up the invitation. Of two concurrent uses, one succeeds. Its sender must still be allowed to give the role. */
async function claim(db: Db, invitation: FoundInvitation): Promise<void> {
  const { id, organizationId, role } = invitation;
  const claimed = await db
    .updateTable('invitations')
    .set({ accepted_at: sql`now()` })
    .where('id', '=', id)
    .where('accepted_at', 'is', null)
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`)
    .returning('id')
    .executeTakeFirst();
  if (!claimed) throw notPending('accepted');
  const { invitedByUserId, invitedByKeyId } = invitation;
  const actor: Actor | null =
    invitedByUserId === null
      ? invitedByKeyId === null
        ? null
        : { kind: 'api_key', id: invitedByKeyId }
      : { kind: 'user', id: invitedByUserId };
  const permissions = ROLE_PERMISSIONS[role];
  if (await findRequesterProblem(db, { organizationId, actor }, { act: 'invitation', permissions }))
    throw new AppError('conflict', {
      detail: 'The person or key that invited you may no longer invite people.',
      fix: 'Ask an administrator of the organization for a new invitation.',
    });
}

async function describeInviter(db: Db, invitationId: string): Promise<string> {
  const inviter = await db
    .selectFrom('invitations as i')
    .leftJoin('users as u', 'u.id', 'i.invited_by_user_id')
    .select(['u.email', 'i.invited_by_key_id as keyId'])
    .where('i.id', '=', invitationId)
    .executeTakeFirst();
  return inviter?.email ?? `API key ${inviter?.keyId}`;
}

/** The account may have been deleted or suspended, or its address changed, since the invitation was read. */
async function requireUser(
  db: Db,
  { email }: FoundInvitation,
  session: PresentSession | undefined,
): Promise<string> {
  if (!session) throw unauthenticated();
  const user = await db
    .selectFrom('users')
    .select('id')
    .where('id', '=', session.person.userId)
    .where('email', '=', email)
    .where('deleted_at', 'is', null)
    .where('status', '=', 'active')
    .forShare()
    .executeTakeFirst();
  if (!user) throw unauthenticated();
  return user.id;
}

/** Answers with the session of the request, because an invitation must not renew it. */
async function keepSession(db: Db, { person, token }: PresentSession): Promise<SignedIn['signIn']> {
  const session = await db
    .selectFrom('sessions')
    .select(['id', 'expires_at as expiresAt'])
    .where('id', '=', person.sessionId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  if (!session) throw unauthenticated();
  return {
    kind: 'session',
    session: { ...session, token, deviceTokens: [] },
    isEnrollmentOnly: false,
  };
}

function notPending(status: InvitationStatus): AppError {
  const details: Record<string, string> = {
    accepted: 'The invitation has been accepted already.',
    revoked: 'The invitation was revoked.',
    expired: 'The invitation has expired.',
  };
  return new AppError('conflict', {
    detail: details[status] ?? 'The invitation is no longer open.',
    fix: 'If you are a member, sign in. Otherwise ask for a new invitation.',
  });
}
