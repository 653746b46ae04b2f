import { type Expression, type SqlBool, sql } from 'kysely';
import { requesterProblem } from '../identity/requester.ts';

/**
 * The set-up link `l` of the organization `o` works. It ends with the rights of its creator: those of a member who may set up
 * single sign-on, or of a key. For the people role, which sees both.
 */
export const IS_LIVE_SETUP_LINK: Expression<SqlBool> = sql`
  l.revoked_at is null and l.expires_at > now() and o.deleted_at is null and o.status = 'active'
  and ${requesterProblem(
    {
      organizationId: sql.ref('l.org_id'),
      userId: sql.ref('l.created_by_user_id'),
      keyId: sql.ref('l.created_by_key_id'),
    },
    { act: 'sso_setup_link' },
  )} is null`;
