import { sql } from '@mikro-orm/core';

/**
 * SQL: an open suspension for abuse affects the inbox `i` of the environment `e` and the organization `o`. Looked up only if
 * one of them is suspended, because the send gate runs twice for every message.
 */
export const IS_SUSPENDED_FOR_ABUSE = sql`case
  when o.status = 'active' and e.status = 'active' and i.status = 'active' then false
  else exists (select from suspensions s
    where s.target_id in (o.id, e.id, i.id) and s.reason = 'abuse' and s.lifted_at is null) end`;
