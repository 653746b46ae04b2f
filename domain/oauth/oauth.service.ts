import { sql } from '@mikro-orm/core';
import type { Logger } from 'pino';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { notFound } from '../../platform/errors.ts';
import type { OauthProvider } from '../../platform/oauth-providers.ts';
import type { Person } from '../identity/person.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import type { Tier } from '../organizations/tier.ts';
import { lockAccountAddress } from '../people/account-address.ts';
import type { Client } from '../people/client.ts';
import type { SignedIn } from '../people/sign-in.service.ts';
import { startSession } from '../people/start-session.ts';
import { announceLinkChange } from './announce-link-change.ts';
import { createOauthAccount, isAddressTaken, provedAddress } from './create-oauth-account.ts';
import { linkIdentity, touchIdentity } from './link-identity.ts';
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
  /** For a cookie: only this browser can finish. */
  browserToken: string;
}

export type OauthOutcome =
  | { kind: 'signed_in'; signedIn: SignedIn; redirectTo: string }
  | { kind: 'linked'; provider: string; redirectTo: string };

export interface OauthService {
  /** The providers that people may choose from. */
  providers(): { id: string; name: string }[];
  /**
   * Begins a sign-in, or a link to the person's account.
   *
   * @param redirectTo a path of this service.
   * @throws AppError `not_found` for an unknown provider; `unavailable` if the provider does not respond.
   */
  start(providerId: string, request: { redirectTo: string; person: Person | null }): Promise<OauthStart>;
  /**
   * Finishes what {@link start} began. A person is found by provider, issuer and subject alone, never by address. A
   * person who signs in for the first time gets an account and an organization if the provider proves their address.
   *
   * @param answer.parameters of the callback, as the provider sent them.
   * @throws AppError `oauth_failed` for a wrong, late, repeated or foreign answer; `account_exists` if the address has an
   * account; `unprocessable` if the provider proves no address; `already_exists` or `conflict` for a link that contradicts
   * another; `account_deleted` or `invalid_credentials` for a deleted or suspended person.
   */
  finish(
    providerId: string,
    answer: { parameters: URLSearchParams; browserToken: string | undefined },
    client: Client,
  ): Promise<OauthOutcome>;
}

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

export function createOauthService(options: OauthOptions): OauthService {
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
    providers: () => connections.map(({ provider: { id, name } }) => ({ id, name })),

    async start(providerId, { redirectTo, person }) {
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
      await database.peopleTransaction(({ em }) =>
        createOauthTransaction(em, provider.id, secrets, { redirectTo, sessionId }),
      );
      return { redirectUrl, browserToken: secrets.browserToken };
    },

    async finish(providerId, { parameters, browserToken }, client) {
      const connection = find(providerId);
      const { provider } = connection;
      const states = parameters.getAll('state');
      const [state = ''] = states;
      if (states.length !== 1 || browserToken === undefined) throw oauthFailed(provider);
      const pending = await database.peopleTransaction(({ em }) =>
        useOauthTransaction(em, provider.id, { state, browserToken }),
      );
      if (!pending) throw oauthFailed(provider);
      const identity = await readAnswer(connection, parameters, oauthSecretsOf(browserToken, state));
      return database.peopleTransaction(async (transaction) => {
        // One identity or address at a time: of two first sign-ins one creates the account.
        await lockKey(transaction.em, 'oauth identity', provider.id, identity.issuer, identity.subject);
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
  { em }: Transaction,
  { options, provider, identity, client }: Context,
): Promise<SignedIn> {
  const knownId = await touchIdentity(em, provider, identity);
  const userId = knownId ?? (await createAccount());
  return { userId, signIn: await startSession(em, { userId, method: 'oauth', ...client }) };

  async function createAccount(): Promise<string> {
    const email = provedAddress(identity, options.ownDomains);
    if (email === null) throw emailNotVerified(provider);
    await lockAccountAddress(em, email);
    if (await isAddressTaken(em, email)) throw accountExists(provider);
    const newId = await createOauthAccount(em, { email, identity, tier: options.tier, client });
    await linkIdentity(em, provider, { userId: newId, identity });
    return newId;
  }
}

/** The session that began the link must still be active: signing out cancels what it has begun. */
async function link(
  transaction: Transaction,
  { options, provider, identity, client }: Context,
  { sessionId }: OauthTransaction & { sessionId: string },
): Promise<void> {
  const { em } = transaction;
  const [user] = await em.execute<{ id: string; email: string }[]>(sql`
    select u.id, u.email from sessions s join users u on u.id = s.user_id
    where s.id = ${sessionId} and s.revoked_at is null and s.expires_at > now() and u.deleted_at is null
      and u.status = 'active' for update of u`);
  if (!user) throw oauthFailed(provider);
  const isNew = await linkIdentity(em, provider, { userId: user.id, identity });
  if (!isNew) return;
  const person = { userId: user.id, sessionId, ip: client.ip, requestId: client.requestId };
  await announceLinkChange(transaction, options.notifications, {
    person,
    email: user.email,
    provider,
    change: 'linked',
  });
}
