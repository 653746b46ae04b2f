import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { OauthProvider } from '../../platform/oauth-providers.ts';
import type { OauthIdentity } from './oauth-client.ts';
import { linkedElsewhere, otherIdentityLinked } from './oauth-errors.ts';

/** Finds the person whom an identity is linked with, and records its use. Runs in the caller's transaction. */
export async function touchIdentity(
  em: EntityManager,
  { id: provider }: Pick<OauthProvider, 'id'>,
  { issuer, subject, email }: OauthIdentity,
): Promise<string | undefined> {
  const [linked] = await em.execute<{ userId: string }[]>(sql`
    update oauth_identities set last_used_at = now(), email = ${email}
    where provider = ${provider} and issuer = ${issuer} and subject = ${subject} returning user_id as "userId"`);
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
  em: EntityManager,
  provider: OauthProvider,
  { userId, identity }: { userId: string; identity: OauthIdentity },
): Promise<boolean> {
  const linkedWith = await touchIdentity(em, provider, identity);
  if (linkedWith === userId) return false;
  if (linkedWith !== undefined) throw linkedElsewhere(provider);
  const { issuer, subject, email } = identity;
  const linked = await em.execute<object[]>(sql`
    insert into oauth_identities (provider, issuer, subject, user_id, email, last_used_at, created_at)
    values (${provider.id}, ${issuer}, ${subject}, ${userId}, ${email}, now(), now())
    on conflict (user_id, provider) do nothing returning user_id`);
  if (linked.length === 0) throw otherIdentityLinked(provider);
  return true;
}
