import { sql } from '@mikro-orm/core';
import type { Sql } from '../../platform/database/sql.ts';

/** SQL: an open suspension for abuse affects one of the targets. */
export const isSuspendedForAbuse = (targetIds: Sql) => sql`exists (select from suspensions s
  where s.target_id in (${targetIds}) and s.reason = 'abuse' and s.lifted_at is null)`;

/**
 * SQL: an open suspension for abuse affects the inbox `i` of the environment `e` and the organization `o`. Looked up only if
 * one of them is suspended, because the send gate runs twice for every message.
 */
export const IS_SUSPENDED_FOR_ABUSE = sql`case
  when o.status = 'active' and e.status = 'active' and i.status = 'active' then false
  else ${isSuspendedForAbuse(sql`o.id, e.id, i.id`)} end`;
