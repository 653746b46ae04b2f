import { sql } from 'kysely';
import { createOneTimeToken, hashOneTimeToken } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { createApiKey } from '../api-keys/create-api-key.ts';
import { recordPersonAudit } from '../audit/record-audit.ts';
import type { PasswordHashing } from '../identity/password.ts';
import { KEY_PERMISSIONS } from '../identity/permissions.ts';
import type { Client } from '../identity/person.ts';
import { requireSafeName } from '../identity/safe-name.ts';
import { invalidCredentials } from '../identity/sign-in-errors.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { createOrganization } from '../organizations/create-organization.ts';
import { findFreeSlug } from '../organizations/slug.ts';
import type { Tier } from '../organizations/tier.ts';
import { requireOn } from '../toggles/toggles.ts';
import {
  isAddressTaken,
  lockAccountAddress,
  normalizeAccountAddress,
  voidSignUps,
} from './account-address.ts';
import { mailRecoveryToken } from './deleted-account.ts';
import { requireStrongPassword } from './password-rules.ts';
import type { SignInThrottle } from './sign-in-throttle.ts';
import { type StartedSession, startSession } from './start-session.ts';
import { createUser } from './users.ts';

export interface NewSignUp {
  email: string;
  password: string;
  name: string;
  organizationName: string;
}

export interface VerifiedSignUp {
  session: StartedSession;
  userId: string;
  organizationId: string;
  /** The organization's first key, with every permission a key may have. Not returned again. */
  apiKey: string;
}

export type SignUpService = ReturnType<typeof createSignUpService>;

export interface SignUpOptions {
  database: Database;
  notifications: PersonNotificationService;
  throttle: SignInThrottle;
  passwordHashing: PasswordHashing;
  ownDomains: readonly string[];
  tier: Tier;
}

const LIFETIME_HOURS = 24;
const MAX_EMAILS_PER_HOUR = 3;

export function createSignUpService(options: SignUpOptions) {
  const { database, notifications, throttle, passwordHashing, ownDomains, tier } = options;
  return {
    /**
     * Mails a token to the address. The outcome is the same whether or not an account has the address; if one has, the
     * email says so instead.
     *
     * @returns the token of the browser that signs up, which proves in `verify` that the same person is there.
     * @throws AppError `validation_error`, `switched_off`, or `rate_limited` for a fourth email to the address within an hour.
     */
    async start(input: NewSignUp, client: Pick<Client, 'ip'>): Promise<{ browserToken: string }> {
      const email = normalizeAccountAddress(input.email, '/body/email', ownDomains);
      const name = requireSafeName(input.name, '/body/name');
      const organizationName = requireSafeName(input.organizationName, '/body/organization_name');
      requireStrongPassword(input.password, '/body/password', [email, name, organizationName]);
      const passwordHash = await passwordHashing.hash(input.password, client.ip);
      const mailed = createOneTimeToken();
      const browser = createOneTimeToken();
      await database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        await requireOn(db, 'sign_up');
        await lockAccountAddress(db, email);
        await requireFewEmails(db, email);
        await db
          .insertInto('sign_ups')
          .values({
            id: newId('signUp'),
            email,
            name,
            organization_name: organizationName,
            password_hash: passwordHash,
            link_token_hash: mailed.hash,
            browser_token_hash: browser.hash,
            expires_at: sql<Date>`now() + make_interval(hours => ${LIFETIME_HOURS})`,
            used_at: null,
          })
          .execute();
        // The row of a sign-up for an existing account is never verified: its token is not mailed.
        const recipient = { userId: null, email, params: {} };
        if (await mailRecoveryToken(transaction, notifications, email)) return;
        if (await isAddressTaken(db, email))
          await notifications.notify(transaction, { ...recipient, template: 'account-exists' });
        else
          await notifications.notify<'verify-email', 'token'>(transaction, {
            ...recipient,
            template: 'verify-email',
            secrets: { token: mailed.token },
          });
      });
      return { browserToken: browser.token };
    },

    /**
     * Creates the user, their organization with two environments, and its first key, and signs the person in.
     *
     * @param proof the mailed token, and the browser's token or the password of the sign-up.
     * @throws AppError `invalid_credentials`, without saying which part is wrong; `switched_off`.
     */
    async verify(
      { token, browserToken, password }: { token: string; browserToken?: string; password?: string },
      client: Client,
    ): Promise<VerifiedSignUp> {
      const signUp = await findSignUp(database, token);
      // A separate counter, so that strangers who guess passwords at the sign-in cannot keep the owner of the address from
      // finishing the sign-up. The cost is the same for an unknown token.
      const account = signUp ? `sign-up:${signUp.id}` : `token:${token}`;
      await throttle.run({ account, ip: client.ip }, async () => {
        if (!(await isSamePerson(passwordHashing, signUp, { browserToken, password, ip: client.ip })))
          throw invalidCredentials();
      });
      if (!signUp) throw invalidCredentials();
      return database.peopleTransaction(({ db }) => complete(db, signUp, client, tier));
    },
  };
}

type PendingSignUp = NonNullable<Awaited<ReturnType<typeof findSignUp>>>;

function findSignUp(database: Database, token: string) {
  return database.peopleTransaction(({ db }) =>
    db
      .selectFrom('sign_ups')
      .select([
        'id',
        'email',
        'name',
        'organization_name as organizationName',
        'password_hash as passwordHash',
        'browser_token_hash as browserTokenHash',
      ])
      .where('link_token_hash', '=', hashOneTimeToken(token))
      .where('used_at', 'is', null)
      .where('expires_at', '>', sql<Date>`now()`)
      .executeTakeFirst(),
  );
}

async function isSamePerson(
  passwordHashing: PasswordHashing,
  signUp: PendingSignUp | undefined,
  {
    browserToken,
    password,
    ip,
  }: { browserToken: string | undefined; password: string | undefined; ip: string },
): Promise<boolean> {
  if (signUp && browserToken !== undefined && hashOneTimeToken(browserToken).equals(signUp.browserTokenHash))
    return true;
  return passwordHashing.verify(signUp?.passwordHash ?? null, password ?? '', ip);
}

async function complete(db: Db, signUp: PendingSignUp, client: Client, tier: Tier): Promise<VerifiedSignUp> {
  await requireOn(db, 'sign_up');
  await lockAccountAddress(db, signUp.email);
  const { numUpdatedRows } = await db
    .updateTable('sign_ups')
    .set({ used_at: sql<Date>`now()` })
    .where('id', '=', signUp.id)
    .where('used_at', 'is', null)
    .executeTakeFirst();
  if (numUpdatedRows === 0n || (await isAddressTaken(db, signUp.email))) throw invalidCredentials();
  // The address is proved, so all its other pending sign-ups are void.
  await voidSignUps(db, signUp.email);
  const userId = await createUser(db, { ...signUp, emailVerifiedAt: new Date() });
  const created = await createOrganization(db, {
    name: signUp.organizationName,
    slug: await findFreeSlug(db, signUp.organizationName),
    tier,
    ownerId: userId,
  });
  const { token: apiKey } = await createApiKey(
    db,
    {
      organizationId: created.organizationId,
      environmentId: null,
      name: 'First key',
      permissions: [...KEY_PERMISSIONS],
      createdByUserId: userId,
    },
    'live',
  );
  await recordPersonAudit(db, { userId, ...client }, { action: 'organization.created' });
  const signIn = await startSession(db, { userId, method: 'sign_up', ...client });
  // A new account has no second factor, and its organization no policy.
  if (signIn.kind !== 'session') throw invalidCredentials();
  return { session: signIn.session, userId, organizationId: created.organizationId, apiKey };
}

async function requireFewEmails(db: Db, email: string): Promise<void> {
  const row = await db
    .selectFrom('sign_ups')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('email', '=', email)
    .where('created_at', '>', sql<Date>`now() - interval '1 hour'`)
    .executeTakeFirst();
  if ((row?.count ?? 0) >= MAX_EMAILS_PER_HOUR)
    throw new AppError('rate_limited', {
      detail: 'Too many sign-ups with this address within an hour.',
      fix: 'Look for the emails already sent, also among spam, or try again in an hour.',
      headers: { 'retry-after': '3600' },
    });
}
