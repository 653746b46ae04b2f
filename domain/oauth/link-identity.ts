import { sql } from 'kysely';
import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { OauthProvider } from '../../platform/oauth-providers.ts';
import { recordPersonAudit } from '../audit/record-audit.ts';
import type { Person } from '../identity/person.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import type { OauthIdentity } from './oauth-client.ts';
import { linkedElsewhere, otherIdentityLinked } from './oauth-errors.ts';

/** Finds the person with whom an identity is linked, and records its use. Runs in the caller's transaction. */
export async function touchIdentity(
  db: Db,
  { id: provider }: Pick<OauthProvider, 'id'>,
  { issuer, subject, email }: OauthIdentity,
): Promise<string | undefined> {
  const linked = await db
    .updateTable('oauth_identities')
    .set({ last_used_at: sql<Date>`now()`, email })
    .where('provider', '=', provider)
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .returning('user_id as userId')
    .executeTakeFirst();
  return linked?.userId;
}

/**
 * Links an identity with a person, in the caller's transaction.
 *
 * @returns false if it was linked with the person already.
 * @throws AppError `already_exists` if it is linked with another person; `conflict` if the person has linked another
 * identity of the provider.
 */
export async function linkIdentity(
  db: Db,
  provider: OauthProvider,
  { userId, identity }: { userId: string; identity: OauthIdentity },
): Promise<boolean> {
  const linkedWith = await touchIdentity(db, provider, identity);
  if (linkedWith === userId) return false;
  if (linkedWith !== undefined) throw linkedElsewhere(provider);
  const { issuer, subject, email } = identity;
  const linked = await db
    .insertInto('oauth_identities')
    .values({
      provider: provider.id,
      issuer,
      subject,
      user_id: userId,
      email,
      last_used_at: sql<Date>`now()`,
    })
    .onConflict((conflict) => conflict.columns(['user_id', 'provider']).doNothing())
    .returning('user_id')
    .executeTakeFirst();
  if (!linked) throw otherIdentityLinked(provider);
  return true;
}

/** Records that a person linked or unlinked a provider, and mails them. Runs in the transaction of the change. */
export async function announceLinkChange(
  transaction: Transaction,
  notifications: PersonNotificationService,
  {
    person,
    email,
    provider,
    change,
  }: {
    person: Pick<Person, 'userId' | 'sessionId' | 'ip' | 'requestId'>;
    /** Address of the account. */
    email: string;
    provider: Pick<OauthProvider, 'id' | 'name'>;
    change: 'linked' | 'unlinked';
  },
): Promise<void> {
  await recordPersonAudit(transaction.db, person, {
    action: `user.oauth_${change}`,
    details: { provider: provider.id },
  });
  await notifications.notify(transaction, {
    userId: person.userId,
    email,
    template: `oauth-${change}`,
    params: { provider: provider.name, at: formatUtc(new Date()), ip: person.ip },
  });
}
