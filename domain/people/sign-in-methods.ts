import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';

/**
 * Checks that the person can still sign in: by password, passkey, linked provider or SSO. Call it after a method was removed in
 * the same transaction.
 *
 * @throws AppError `conflict`.
 */
export async function requireAnotherSignInMethod(db: Db, userId: string): Promise<void> {
  const methods = await db
    .selectFrom('users')
    .select((eb) =>
      eb
        .or([
          eb('users.password_hash', 'is not', null),
          eb.exists(
            eb
              .selectFrom('mfa_enrollments')
              .select('mfa_enrollments.id')
              .whereRef('mfa_enrollments.user_id', '=', 'users.id')
              .where('mfa_enrollments.type', '=', 'webauthn')
              .where('mfa_enrollments.confirmed_at', 'is not', null),
          ),
          eb.exists(
            eb
              .selectFrom('oauth_identities')
              .select('oauth_identities.user_id')
              .whereRef('oauth_identities.user_id', '=', 'users.id'),
          ),
          eb.exists(
            eb
              .selectFrom('sso_identities')
              .innerJoin('sso_configurations', (join) =>
                join
                  .onRef('sso_configurations.provider_id', '=', 'sso_identities.provider_id')
                  .onRef('sso_configurations.org_id', '=', 'sso_identities.org_id'),
              )
              .select('sso_identities.user_id')
              .whereRef('sso_identities.user_id', '=', 'users.id')
              .where('sso_configurations.status', '=', 'active'),
          ),
        ])
        .as('hasOne'),
    )
    .where('users.id', '=', userId)
    .executeTakeFirst();
  if (methods?.hasOne) return;
  throw new AppError('conflict', {
    detail: 'You could no longer sign in to your account.',
    fix: 'Set a password, register a passkey or link another provider first.',
  });
}
