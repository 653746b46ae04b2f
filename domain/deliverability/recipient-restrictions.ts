import type { ListMatch } from './list-match.ts';
import type { SuppressionOrigin } from './suppression.entity.ts';

/** What stands against a recipient, or for it. */
export interface RecipientRestrictions {
  /** As it is kept ({@link addressKey}). */
  email: string;
  suppression: { origin: SuppressionOrigin; status: string | null } | null;
  listMatches: ListMatch[];
}

/**
 * SQL: the list entries that name `email`, as a JSON array of {@link ListMatch}; NULL where none does. An entry names
 * an address, its domain, or a domain above it. Each name is looked up for itself (`offset 0` keeps the planner from
 * joining otherwise): of `entry = any(…)` it may think that walking through the whole list is as cheap.
 *
 * @param inbox alias of the row of `inboxes` whose scopes count.
 */
export function listMatchesSql(direction: 'send' | 'receive', email: string, inbox = 'i'): string {
  return `(select jsonb_agg(jsonb_build_object('entry', l.entry, 'effect', l.effect, 'scope',
        case when l.inbox_id is not null then 'inbox' when l.env_id is not null then 'environment' else 'organization' end))
      from unnest(array(
          select array_to_string(d.labels[n:], '.')
          from (select string_to_array(split_part(${email}, '@', -1), '.') as labels) d, generate_subscripts(d.labels, 1) n
          union all select ${email})) k(entry)
        cross join lateral (
          select * from list_entries
          where org_id = ${inbox}.org_id and direction = '${direction}' and entry = k.entry
          offset 0) l
      where (l.env_id is null or l.env_id = ${inbox}.env_id) and (l.inbox_id is null or l.inbox_id = ${inbox}.id))`;
}

/**
 * SQL: a JSON array of {@link RecipientRestrictions}, of those recipients something stands against or for. Part of the
 * gate's one statement, so that fifty recipients cost no more round trips than one.
 *
 * @param recipients a query for `email`, in the spelling of {@link addressKey}.
 */
export function recipientRestrictionsSql(recipients: string, inbox = 'i'): string {
  return `(select coalesce(jsonb_agg(jsonb_build_object('email', c.email, 'suppression', c.suppression,
        'listed', coalesce(c.listed, '[]'))), '[]')
      from (select r.email,
          (select jsonb_build_object('origin', s.origin, 'status', s.status) from suppressions s
           where s.org_id = ${inbox}.org_id and s.email = r.email) as suppression,
          ${listMatchesSql('send', 'r.email', inbox)} as listed
        from (${recipients}) r
        offset 0) c
      where c.suppression is not null or c.listed is not null)`;
}
