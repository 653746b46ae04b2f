import { type Expression, sql } from 'kysely';

/** SQL: an open suspension for abuse affects one of the targets. */
export const hasAbuseSuspension = (...targetIds: Expression<string>[]) => sql<boolean>`exists (
  select from suspensions s
  where s.target_id in (${sql.join(targetIds)}) and s.reason = 'abuse' and s.lifted_at is null)`;

/**
 * SQL: an open suspension for abuse affects the inbox `i` of the environment `e` and the organization `o`. Looked up only if
 * one of them is suspended, because the send gate runs twice for every message.
 */
export const HAS_ABUSE_SUSPENSION = sql<boolean>`case
  when o.status = 'active' and e.status = 'active' and i.status = 'active' then false
  else ${hasAbuseSuspension(sql.ref('o.id'), sql.ref('e.id'), sql.ref('i.id'))} end`;
