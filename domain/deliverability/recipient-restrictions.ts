import { type RawBuilder, sql } from 'kysely';
import type { ListDirection, ListMatch } from './list-match.ts';
import type { SuppressionOrigin } from './suppression.entity.ts';

/** The suppression that applies to the sending inbox (that of the organization first) and the list entries that concern a recipient. */
export interface RecipientRestrictions {
  /** Normalized by `toAddressKey`. */
  email: string;
  suppression: { origin: SuppressionOrigin; status: string | null } | null;
  listMatches: ListMatch[];
}

const INBOX = sql.ref('i');

/**
 * Selects the list entries that match an address; NULL if none does. An entry is the address, its domain, or a parent
 * domain. Each of them is a separate index lookup (`offset 0` prevents other joins): for `entry = any(…)` the planner may
 * scan the whole list.
 *
 * @param email the address, normalized by `toAddressKey`.
 * @param inbox alias of the `inboxes` row whose scopes apply.
 */
export function selectListMatches(
  direction: ListDirection,
  email: RawBuilder<unknown>,
  inbox = INBOX,
): RawBuilder<ListMatch[] | null> {
  return sql`(select jsonb_agg(jsonb_build_object('entry', l.entry, 'effect', l.effect, 'scope',
        case when l.inbox_id is not null then 'inbox' when l.env_id is not null then 'environment' else 'organization' end))
      from unnest(array(
          select array_to_string(d.labels[n:], '.')
          from (select string_to_array(split_part(${email}, '@', -1), '.') as labels) d, generate_subscripts(d.labels, 1) n
          union all select ${email})) k(entry)
        cross join lateral (
          select * from list_entries
          where org_id = ${inbox}.org_id and direction = ${direction} and entry = k.entry
          offset 0) l
      where (l.env_id is null or l.env_id = ${inbox}.env_id) and (l.inbox_id is null or l.inbox_id = ${inbox}.id))`;
}

/**
 * Selects the restrictions of those recipients that have any. It is part of the gate's single statement, so that 50
 * recipients need no more round trips than one.
 *
 * @param recipients a query for `email`, normalized by `toAddressKey`.
 */
export function selectRecipientRestrictions(
  recipients: RawBuilder<unknown>,
  inbox = INBOX,
): RawBuilder<RecipientRestrictions[]> {
  return sql`(select coalesce(jsonb_agg(jsonb_build_object('email', c.email, 'suppression', c.suppression,
        'listMatches', coalesce(c.matches, '[]'))), '[]')
      from (select r.email,
          (select jsonb_build_object('origin', s.origin, 'status', s.status) from suppressions s
           where s.org_id = ${inbox}.org_id and s.email = r.email
             -- Not as a condition of the index, in which three values would make it look dearer than one by org_id alone.
             and array[${inbox}.org_id, ${inbox}.env_id, ${inbox}.id] @> array[s.scope_id]
           order by s.scope_id = s.org_id desc limit 1) as suppression,
          ${selectListMatches('send', sql`r.email`, inbox)} as matches
        from (${recipients}) r
        offset 0) c
      where c.suppression is not null or c.matches is not null)`;
}
