import { sql } from 'kysely';
import type { Logger } from 'pino';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { notFound } from '../../platform/errors.ts';
import type { OauthProvider } from '../../platform/oauth-providers.ts';
import type { Client, Person } from '../identity/person.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import type { Tier } from '../organizations/tier.ts';
import { isAddressTaken, lockAccountAddress } from '../people/account-address.ts';
import type { SignedIn } from '../people/sign-in.service.ts';
import { startSession } from '../people/start-session.ts';
import { createOauthAccount, provedAddress } from './create-oauth-account.ts';
import { announceLinkChange, linkIdentity, touchIdentity } from './link-identity.ts';
import type { OauthClient, OauthIdentity } from './oauth-client.ts';
import {
  accountExists,
  describeFailure,
  emailNotVerified,
  oauthFailed,
  oauthUnavailable,
} from './oauth-errors.ts';
import {
  createOauthSecrets,
  createOauthTransaction,
  type OauthTransaction,
  oauthSecretsOf,
  useOauthTransaction,
} from './oauth-transactions.ts';

export interface OauthStart {
  redirectUrl: string;
  /** For a cookie: only this browser can finish the sign-in. */
  browserToken: string;
}

export type OauthOutcome =
  | { kind: 'signed_in'; signedIn: SignedIn; redirectTo: string }
  | { kind: 'linked'; provider: string; redirectTo: string };

export type OauthService = ReturnType<typeof createOauthService>;

/** A provider with its protocol. */
export interface OauthConnection {
  provider: OauthProvider;
  client: OauthClient;
}

export interface OauthOptions {
  database: Database;
  notifications: PersonNotificationService;
  connections: OauthConnection[];
  ownDomains: readonly string[];
  tier: Tier;
  logger: Logger;
}

export function createOauthService(options: OauthOptions) {
  const { database, connections, logger } = options;

  function find(providerId: string): OauthConnection {
    const connection = connections.find(({ provider }) => provider.id === providerId);
    if (!connection) throw notFound('OAuth provider', providerId);
    return connection;
  }

  async function readAnswer(
    { provider, client }: OauthConnection,
    parameters: URLSearchParams,
    secrets: ReturnType<typeof oauthSecretsOf>,
  ): Promise<OauthIdentity> {
    try {
      return await client.readAnswer(parameters, secrets);
    } catch (error) {
      logger.warn(
        { provider: provider.id, reason: describeFailure(error) },
        'sign-in with a provider failed',
      );
      throw oauthFailed(provider);
    }
  }

  return {
    /** The providers that people may choose from. */
    providers: (): { id: string; name: string }[] =>
      connections.map(({ provider: { id, name } }) => ({ id, name })),

    /**
     * Begins a sign-in, or a link to the person's account.
     *
     * @param redirectTo a path of this service.
     * @throws AppError `not_found` for an unknown provider; `unavailable` if the provider does not respond.
     */
    async start(
      providerId: string,
      { redirectTo, person }: { redirectTo: string; person: Person | null },
    ): Promise<OauthStart> {
      const { provider, client } = find(providerId);
      const secrets = createOauthSecrets();
      let redirectUrl: string;
      try {
        redirectUrl = await client.authorizationUrl(secrets);
      } catch (error) {
        logger.error({ provider: provider.id, reason: describeFailure(error) }, 'a provider cannot be used');
        throw oauthUnavailable(provider);
      }
      const sessionId = person?.sessionId ?? null;
      await database.peopleTransaction(({ db }) =>
        createOauthTransaction(db, provider.id, secrets, { redirectTo, sessionId }),
      );
      return { redirectUrl, browserToken: secrets.browserToken };
    },

    /**
     * Finishes the sign-in or link that `start` began. A person is found by provider, issuer and subject alone, never by
     * address. A person who signs in for the first time gets an account and an organization if the provider proves their
     * address.
     *
     * @param answer.parameters of the callback, as the provider sent them.
     * @throws AppError `oauth_failed` for a wrong, late, repeated or foreign answer; `account_exists` if the address has an
     * account; `unprocessable` if the provider proves no address; `already_exists` or `conflict` for a link that contradicts
     * another; `account_deleted` or `invalid_credentials` for a deleted or suspended person.
     */
    async finish(
      providerId: string,
      { parameters, browserToken }: { parameters: URLSearchParams; browserToken: string | undefined },
      client: Client,
    ): Promise<OauthOutcome> {
      const connection = find(providerId);
      const { provider } = connection;
      const states = parameters.getAll('state');
      const [state = ''] = states;
      if (states.length !== 1 || browserToken === undefined) throw oauthFailed(provider);
      const pending = await database.peopleTransaction(({ db }) =>
        useOauthTransaction(db, provider.id, { state, browserToken }),
      );
      if (!pending) throw oauthFailed(provider);
      const identity = await readAnswer(connection, parameters, oauthSecretsOf(browserToken, state));
      return database.peopleTransaction(async (transaction) => {
        // Serializes sign-ins by identity and address, so that only one of two first sign-ins creates the account.
        await lockKey(transaction.db, 'oauth identity', provider.id, identity.issuer, identity.subject);
        const context = { options, provider, identity, client };
        const { redirectTo, sessionId } = pending;
        if (sessionId === null)
          return { kind: 'signed_in', signedIn: await signIn(transaction, context), redirectTo };
        await link(transaction, context, { ...pending, sessionId });
        return { kind: 'linked', provider: provider.id, redirectTo };
      });
    },
  };
}

interface Context {
  options: OauthOptions;
  provider: OauthProvider;
  identity: OauthIdentity;
  client: Client;
}

async function signIn(
  { db }: Transaction,
  { options, provider, identity, client }: Context,
): Promise<SignedIn> {
  const knownId = await touchIdentity(db, provider, identity);
  const userId = knownId ?? (await createAccount());
  return { userId, signIn: await startSession(db, { userId, method: 'oauth', ...client }) };

  async function createAccount(): Promise<string> {
    const email = provedAddress(identity, options.ownDomains);
    if (email === null) throw emailNotVerified(provider);
    await lockAccountAddress(db, email);
    if (await isAddressTaken(db, email)) throw accountExists(provider);
    const newId = await createOauthAccount(db, { email, identity, tier: options.tier, client });
    await linkIdentity(db, provider, { userId: newId, identity });
    return newId;
  }
}

/** The session that began the link must still be active: signing out cancels the links that it has begun. */
async function link(
  transaction: Transaction,
  { options, provider, identity, client }: Context,
  { sessionId }: OauthTransaction & { sessionId: string },
): Promise<void> {
  const { db } = transaction;
  const user = await db
    .selectFrom('sessions')
    .innerJoin('users', 'users.id', 'sessions.user_id')
    .select(['users.id', 'users.email'])
    .where('sessions.id', '=', sessionId)
    .where('sessions.revoked_at', 'is', null)
    .where('sessions.expires_at', '>', sql<Date>`now()`)
    .where('users.deleted_at', 'is', null)
    .where('users.status', '=', 'active')
    .forUpdate('users')
    .executeTakeFirst();
  if (!user) throw oauthFailed(provider);
  const isNew = await linkIdentity(db, provider, { userId: user.id, identity });
  if (!isNew) return;
  const person = { userId: user.id, sessionId, ip: client.ip, requestId: client.requestId };
  await announceLinkChange(transaction, options.notifications, {
    person,
    email: user.email,
    provider,
    change: 'linked',
  });
}
