import { type RawBuilder, sql } from 'kysely';
import { type ListMatch, selectListMatches } from './list-match.ts';
import type { SuppressionOrigin } from './suppression.entity.ts';

/**
 * The restrictions of one recipient: the suppression that applies to the sending inbox (the organization's takes
 * precedence) and the matching list entries.
 */
export interface RecipientRestrictions {
  /** Normalized by `toAddressKey`. */
  email: string;
  suppression: { origin: SuppressionOrigin; status: string | null } | null;
  listMatches: ListMatch[];
}

const INBOX = sql.ref('i');

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
             -- Not as a condition of the index, in which three values would make it look more expensive than one by org_id alone.
             and array[${inbox}.org_id, ${inbox}.env_id, ${inbox}.id] @> array[s.scope_id]
           order by s.scope_id = s.org_id desc limit 1) as suppression,
          ${selectListMatches('send', sql`r.email`, inbox)} as matches
        from (${recipients}) r
        offset 0) c
      where c.suppression is not null or c.matches is not null)`;
}
