import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { AppError } from '../../platform/errors.ts';

/**
 * Checks, after one was removed in the same transaction, that the person can still sign in: by password, passkey, linked
 * provider or SSO.
 *
 * @throws AppError `conflict`.
 */
export async function requireOtherWayIn(em: EntityManager, userId: string): Promise<void> {
  const [ways] = await em.execute<{ hasOne: boolean }[]>(sql`
    select password_hash is not null
      or exists (select from mfa_enrollments e
                 where e.user_id = u.id and e.type = 'webauthn' and e.confirmed_at is not null)
      or exists (select from oauth_identities o where o.user_id = u.id)
      or exists (select from sso_identities i join sso_configurations c on c.provider_id = i.provider_id
                 where i.user_id = u.id and c.org_id = i.org_id and c.status = 'active') as "hasOne"
    from users u where u.id = ${userId}`);
  if (ways?.hasOne) return;
  throw new AppError('conflict', {
    detail: 'You could not sign in to your account any more.',
    fix: 'Set a password, register a passkey or link another provider first.',
  });
}
