import type { Database } from '../../platform/database/database.ts';
import { notFound } from '../../platform/errors.ts';
import type { Person } from '../identity/person.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { requireAnotherSignInMethod } from '../people/sign-in-methods.ts';
import { announceLinkChange } from './link-identity.ts';

/** A provider that the person may sign in with. */
export interface OauthLink {
  provider: string;
  /** Name on buttons; the id if the operator has removed the provider. */
  name: string;
  /** The address that the provider last stated. */
  email: string | null;
  createdAt: Date;
  lastUsedAt: Date;
}

export type OauthLinkService = ReturnType<typeof createOauthLinkService>;

export interface OauthLinkOptions {
  database: Database;
  notifications: PersonNotificationService;
  /** Names of providers by id. */
  names: ReadonlyMap<string, string>;
}

export function createOauthLinkService({ database, notifications, names }: OauthLinkOptions) {
  const nameOf = (provider: string) => names.get(provider) ?? provider;
  return {
    /** Oldest first. */
    list: ({ userId }: Person): Promise<OauthLink[]> =>
      database.peopleTransaction(async ({ db }) => {
        const rows = await db
          .selectFrom('oauth_identities')
          .select(['provider', 'email', 'created_at as createdAt', 'last_used_at as lastUsedAt'])
          .where('user_id', '=', userId)
          .orderBy('created_at')
          .orderBy('provider')
          .execute();
        return rows.map((row) => ({ ...row, name: nameOf(row.provider) }));
      }),

    /** @throws AppError `not_found`; `conflict` if the person could not sign in without the link. */
    unlink: (person: Person, provider: string): Promise<void> =>
      database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        const user = await db
          .selectFrom('users')
          .select('email')
          .where('id', '=', person.userId)
          .forUpdate()
          .executeTakeFirst();
        const { numDeletedRows } = await db
          .deleteFrom('oauth_identities')
          .where('user_id', '=', person.userId)
          .where('provider', '=', provider)
          .executeTakeFirst();
        if (!user || numDeletedRows === 0n) throw notFound('linked provider', provider);
        await requireAnotherSignInMethod(db, person.userId);
        await announceLinkChange(transaction, notifications, {
          person,
          email: user.email,
          provider: { id: provider, name: nameOf(provider) },
          change: 'unlinked',
        });
      }),
  };
}
