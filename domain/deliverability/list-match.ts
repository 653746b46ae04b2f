import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { toAddressKey } from '../mime/mail-address.ts';

export const LIST_DIRECTIONS = ['send', 'receive'] as const;
export type ListDirection = (typeof LIST_DIRECTIONS)[number];
export const LIST_EFFECTS = ['allow', 'block'] as const;
export type ListEffect = (typeof LIST_EFFECTS)[number];
/** Narrowest first: the first scope with a matching entry applies. */
export const LIST_SCOPES = ['inbox', 'environment', 'organization'] as const;
export type ListScope = (typeof LIST_SCOPES)[number];

/** A list entry that matches an address: the address itself, its domain, or a parent domain. */
export interface ListMatch {
  entry: string;
  effect: ListEffect;
  scope: ListScope;
  /** Only mail that is authenticated as the entry's domain is accepted. */
  authenticated: boolean;
}

/**
 * Finds the entry that applies to an address. The narrowest scope takes precedence (inbox, environment, organization).
 * Within one scope, block takes precedence over allow, even if the allow entry is more specific. An allow entry only
 * overrides a block of a wider scope; it does not block unlisted addresses.
 *
 * @returns null if no entry matches.
 */
export function findDecidingMatch(matches: readonly ListMatch[]): ListMatch | null {
  for (const scope of LIST_SCOPES) {
    const inScope = matches.filter((match) => match.scope === scope);
    const deciding = inScope.find(({ effect }) => effect === 'block') ?? inScope[0];
    if (deciding) return deciding;
  }
  return null;
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
  return sql`(select jsonb_agg(jsonb_build_object('entry', l.entry, 'effect', l.effect, 'authenticated', l.authenticated, 'scope',
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
 * SQL: the entries of the receive lists of an inbox, its environment and its organization that match a sender; NULL if none
 * does. {@link findDecidingMatch} tells which of them applies.
 */
export function selectReceiveMatches(sender: string): RawBuilder<ListMatch[] | null> {
  const key = toAddressKey(sender);
  return key === null ? sql`null::jsonb` : selectListMatches('receive', sql`${key}::text`);
}

/**
 * Looks up a sender in the receive lists of an inbox, its environment and its organization.
 *
 * @returns the entry that applies; null if none matches.
 */
export async function findReceiveListMatch(
  db: Db,
  inboxId: string,
  sender: string,
): Promise<ListMatch | null> {
  const found = await db
    .selectFrom('inboxes as i')
    .select(selectReceiveMatches(sender).as('matches'))
    .where('i.id', '=', inboxId)
    .executeTakeFirst();
  return findDecidingMatch(found?.matches ?? []);
}
