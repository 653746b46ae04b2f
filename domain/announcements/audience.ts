import { sql } from 'kysely';

/**
 * SQL: the membership `m` in the organization `o` belongs to the audience of the announcement `a`. Closed organizations
 * belong to none.
 */
export const IS_IN_AUDIENCE = sql<boolean>`o.deleted_at is null and case a.audience
  when 'all' then true
  when 'owners' then m.role = 'owner'
  when 'tier' then o.tier = a.tier
  else o.id = any (a.organization_ids) end`;
