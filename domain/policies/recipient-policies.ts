import { sql } from '@mikro-orm/core';
import type { Sql } from '../../platform/database/sql.ts';

/** A recipient that a policy does not allow. */
export interface RecipientViolation {
  /** Normalized by `toAddressKey`. */
  email: string;
  policy: 'allowed_recipient_domains' | 'blocked_recipient_domains';
}

const isWithin = (domains: Sql) => sql`d.suffixes && ${domains}`;

/**
 * SQL: a JSON array of {@link RecipientViolation}; empty without such policies. A domain includes those below it, and
 * blocked domains take precedence. Part of the gate's single statement.
 *
 * @param recipients a query for `email`, normalized by `toAddressKey`.
 * @param policies alias of the `organization_policies` row, whose columns may be null.
 */
export function recipientViolationsSql(recipients: Sql, policies: Sql): Sql {
  const allowed = sql`${policies}.allowed_recipient_domains`;
  const blocked = sql`${policies}.blocked_recipient_domains`;
  return sql`case when coalesce(cardinality(${allowed}) + cardinality(${blocked}), 0) = 0 then '[]' else
    (select coalesce(jsonb_agg(jsonb_build_object('email', r.email, 'policy',
        case when ${isWithin(blocked)} then 'blocked_recipient_domains' else 'allowed_recipient_domains' end)), '[]')
      from (${recipients}) r
        cross join lateral (select array(
          select array_to_string(l.labels[n:], '.')
          from (select string_to_array(split_part(r.email, '@', -1), '.') as labels) l, generate_subscripts(l.labels, 1) n
        ) as suffixes) d
      where ${isWithin(blocked)} or cardinality(${allowed}) > 0 and not ${isWithin(allowed)}) end`;
}
