import { sql } from '@mikro-orm/core';
import { dbOf } from '../../platform/database/bridge.ts';
import type { Database } from '../../platform/database/database.ts';
import type { SerializedRow } from '../../platform/database/serialized-row.ts';
import { notFound } from '../../platform/errors.ts';
import type { Person } from '../identity/person.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { requireOtherWayIn } from '../people/ways-in.ts';
import { announceLinkChange } from './announce-link-change.ts';

/** A provider that the person may sign in with. */
export interface OauthLink {
  provider: string;
  /** On buttons; the id of a provider that the operator has removed. */
  name: string;
  /** As the provider stated it last. */
  email: string | null;
  createdAt: Date;
  lastUsedAt: Date;
}

export interface OauthLinkService {
  /** Oldest first. */
  list(person: Person): Promise<OauthLink[]>;
  /** @throws AppError `not_found`; `conflict` if the person could not sign in without it. */
  unlink(person: Person, provider: string): Promise<void>;
}

export interface OauthLinkOptions {
  database: Database;
  notifications: PersonNotificationService;
  /** Names of providers by id. */
  names: ReadonlyMap<string, string>;
}

export function createOauthLinkService({
  database,
  notifications,
  names,
}: OauthLinkOptions): OauthLinkService {
  const nameOf = (provider: string) => names.get(provider) ?? provider;
  return {
    list: ({ userId }) =>
      database.peopleTransaction(async ({ em }) => {
        const rows = await em.execute<SerializedRow<Omit<OauthLink, 'name'>>[]>(sql`
          select provider, email, created_at as "createdAt", last_used_at as "lastUsedAt" from oauth_identities
          where user_id = ${userId} order by created_at, provider`);
        return rows.map((row) => ({
          ...row,
          name: nameOf(row.provider),
          createdAt: new Date(row.createdAt),
          lastUsedAt: new Date(row.lastUsedAt),
        }));
      }),

    unlink: (person, provider) =>
      database.peopleTransaction(async (transaction) => {
        const { em } = transaction;
        const [user] = await em.execute<{ email: string }[]>(
          sql`select email from users where id = ${person.userId} for update`,
        );
        const removed = await em.execute<object[]>(sql`
          delete from oauth_identities where user_id = ${person.userId} and provider = ${provider} returning provider`);
        if (!user || removed.length === 0) throw notFound('linked provider', provider);
        await requireOtherWayIn(dbOf(em), person.userId);
        await announceLinkChange(transaction, notifications, {
          person,
          email: user.email,
          provider: { id: provider, name: nameOf(provider) },
          change: 'unlinked',
        });
      }),
  };
}
