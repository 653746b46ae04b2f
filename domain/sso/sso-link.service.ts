import { notFound } from '../../platform/errors.ts';
import type { Client, Person } from '../identity/person.ts';
import type { SignedIn } from '../people/sign-in.service.ts';
import { type BeginOptions, beginLogin, type SsoStart } from './begin-login.ts';
import {
  findReplacedConfigurations,
  type LinkUse,
  linkIdentity,
  type ReplacedConfiguration,
  toStatedIdentity,
  useLink,
} from './link-login.ts';
import { findAccount, signInIdentity } from './sign-in-identity.ts';
import { createSsoChecks, ssoNotStarted } from './sso-checks.ts';
import { findSettingsById } from './sso-settings.ts';
import { browserTokenOf, peekSsoTransaction } from './sso-transactions.ts';

/** An identity that waits for its account. */
export interface LinkChoice {
  /** The address that the identity provider states. */
  email: string;
  hasAccount: boolean;
  former: ReplacedConfiguration[];
}

export type SsoLinkService = ReturnType<typeof createSsoLinkService>;

/** The choices of a person whose identity is proved but unknown. They have ten minutes. */
export function createSsoLinkService(options: BeginOptions) {
  const { database, secretBox } = options;
  return {
    /** Undefined for another browser, and after ten minutes. */
    findLink: (link: LinkUse): Promise<LinkChoice | undefined> =>
      database.peopleTransaction(async ({ db }) => {
        const open = await peekSsoTransaction(db, { ...link, purposes: ['link'] });
        if (!open?.claims) return undefined;
        const former = await findReplacedConfigurations(db, open.organizationId);
        return { email: open.claims.email, hasAccount: open.userId !== null, former };
      }),

    /**
     * Begins a login through a replaced configuration, which proves which account belongs to the person.
     *
     * @throws AppError `sso_failed` for a token that cannot be used; `not_found` for another configuration.
     */
    async startLink(link: LinkUse, configurationId: string): Promise<SsoStart> {
      const { open, former } = await database.peopleTransaction(async ({ db }) => ({
        open: await peekSsoTransaction(db, { ...link, purposes: ['link'] }),
        former: await findSettingsById(db, secretBox, configurationId),
      }));
      if (!open) throw ssoNotStarted();
      if (former?.organizationId !== open.organizationId || !former.isReplaced)
        throw notFound('replaced SSO configuration', configurationId);
      const { redirectTo } = open;
      const request = { purpose: 'prove', redirectTo, isFresh: false, userId: null } as const;
      const browserToken = browserTokenOf(link.browserToken);
      return beginLogin(options, former, { ...request, linkToken: link.token }, browserToken);
    },

    /** Creates an account for a person who has none. @throws AppError `sso_failed`, also if the address has an account. */
    join: (link: LinkUse, client: Client): Promise<SignedIn> =>
      database.peopleTransaction(async ({ db }) => {
        const { transaction, settings, claims } = await useLink(options, db, link);
        if (transaction.userId !== null) throw ssoNotStarted();
        const checks = createSsoChecks();
        const account = await findAccount(db, settings, claims, { checks, client, mayBeNew: true });
        // An account with the address was created meanwhile.
        if (account.kind === 'unknown') throw ssoNotStarted();
        const { authenticatedAt } = toStatedIdentity(claims);
        return signInIdentity(db, settings, { userId: account.userId, authenticatedAt }, client);
      }),

    /**
     * Links an identity with the account to which the person has just signed in, and starts an SSO session.
     *
     * @throws AppError `sso_failed` for a token that is unknown, used, expired, of another browser or of another account.
     */
    link: (person: Person, link: LinkUse, client: Client): Promise<SignedIn> =>
      database.peopleTransaction(async (context) => {
        const { transaction, settings, claims } = await useLink(options, context.db, link);
        // If no account has the address, the person may have an account with another address.
        if (transaction.userId !== null && transaction.userId !== person.userId) throw ssoNotStarted();
        return linkIdentity(options, context, { settings, claims, userId: person.userId }, client);
      }),
  };
}
