import { sql } from '@mikro-orm/core';
import { requesterProblemSql } from '../identity/requester-problem-sql.ts';

/**
 * SQL: the set-up link `l` of the organization `o` works. It ends with the rights of its creator: those of a member who may
 * set up single sign-on, or of a key. For the people role, which sees both.
 */
export const IS_LIVE_SETUP_LINK = sql`
  l.revoked_at is null and l.expires_at > now() and o.deleted_at is null and o.status = 'active'
  and ${requesterProblemSql(
    { organizationId: sql`l.org_id`, userId: sql`l.created_by_user_id`, keyId: sql`l.created_by_key_id` },
    { act: 'sso_setup_link' },
  )} is null`;
