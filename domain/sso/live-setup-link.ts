import { sql } from '@mikro-orm/core';
import { MEMBER_ROLES, ROLE_PERMISSIONS } from '../identity/roles.ts';

const PERMISSION = 'sso:manage';
const ROLES = MEMBER_ROLES.filter((role) => ROLE_PERMISSIONS[role].includes(PERMISSION));

/**
 * SQL: the set-up link `l` of the organization `o` works. It ends with the rights of its creator: those of a member who may
 * set up single sign-on, or of a key. For the people role, which sees both.
 */
export const IS_LIVE_SETUP_LINK = sql`
  l.revoked_at is null and l.expires_at > now() and o.deleted_at is null and o.status = 'active'
  and (exists (
      select from members m join users u on u.id = m.user_id and u.deleted_at is null and u.status = 'active'
      where m.org_id = l.org_id and m.user_id = l.created_by_user_id and m.role in (${[...ROLES]}))
    or exists (
      select from api_keys k
      where k.org_id = l.org_id and k.id = l.created_by_key_id and k.revoked_at is null
        and (k.expires_at is null or k.expires_at > now()) and ${PERMISSION} = any(k.permissions)))`;
