import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import type { SsoEnforcement } from '../policies/policy.service.ts';

/** Decides whether an organization may turn `enforce_sso` on without locking itself out. */
export function createSsoEnforcement({ database }: { database: Database }): SsoEnforcement {
  return {
    requireBreakGlassOwner: ({ organizationId }) =>
      database.peopleTransaction(async ({ em }) => {
        const owners = await em.execute<object[]>(sql`
          select from members m join users u on u.id = m.user_id and u.deleted_at is null and u.status = 'active'
          where m.org_id = ${organizationId} and m.role = 'owner' and exists (
            select from mfa_enrollments e
            where e.user_id = u.id and e.confirmed_at is not null
              and (e.type = 'webauthn' or u.password_hash is not null))
          limit 1`);
        if (owners.length === 0)
          throw refusal(
            'No owner could get in if the identity provider fails.',
            'Let an owner add a passkey, or a password and a second factor.',
          );
      }),

    async requireOwnSession(em, { organizationId, member }) {
      const [active] = await em.execute<{ id: string }[]>(sql`
        select id from sso_configurations where org_id = ${organizationId} and status = 'active' for update`);
      const { method, ssoConfigurationId } = member?.person ?? {};
      if (!active || method !== 'sso' || ssoConfigurationId !== active.id)
        throw refusal(
          'You have not signed in through the active SSO configuration.',
          `Sign in through it, and change the policy with that session: GET /api/v1/auth/sso/${organizationId}.`,
        );
    },
  };
}

function refusal(detail: string, fix: string): AppError {
  return new AppError('conflict', {
    detail: `${detail} The policy would lock people out.`,
    fix,
    extensions: { policy: 'enforce_sso' },
  });
}
