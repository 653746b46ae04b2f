import { sql } from '@mikro-orm/core';
import type { Sql } from '../../platform/database/sql.ts';
import { DEFERRED_ACTS } from './deferred-acts.ts';
import { type RequestedAct, rolesWith } from './requester.ts';

/**
 * {@link requesterProblem} for statements of the ORM's template. Goes with its last caller.
 */
export function requesterProblemSql(
  { organizationId, userId, keyId }: Record<'organizationId' | 'userId' | 'keyId', Sql>,
  { act }: Pick<RequestedAct, 'act'>,
): Sql {
  const needed = [...DEFERRED_ACTS[act].permissions];
  return sql`nullif(case
    when ${userId} is not null then coalesce((
      select case when u.status <> 'active' or u.deleted_at is not null then 'account_closed'
        when m.role not in (${rolesWith(needed)}) then 'permission_lost' else 'allowed' end
      from members m join users u on u.id = m.user_id
      where m.org_id = ${organizationId} and m.user_id = ${userId}), 'not_a_member')
    when ${keyId} is not null then coalesce((
      select case when k.revoked_at is not null then 'key_revoked' when k.expires_at <= now() then 'key_expired'
        when not k.permissions @> array[${needed}]::text[] then 'permission_lost'
        when k.env_id is not null or k.inbox_id is not null then 'out_of_reach' else 'allowed' end
      from api_keys k where k.org_id = ${organizationId} and k.id = ${keyId}), 'unknown')
    else 'unknown' end, 'allowed')`;
}
