import { type RawBuilder, sql } from 'kysely';

/** A recipient that a policy does not allow. */
export interface RecipientViolation {
  /** Normalized by `toAddressKey`. */
  email: string;
  policy: 'allowed_recipient_domains' | 'blocked_recipient_domains';
}

/**
 * SQL: the recipients that a policy of the organization does not allow; empty without such policies. A domain includes those
 * below it, and blocked domains take precedence. Part of the gate's single statement, in which `op` is the row of
 * `organization_policies`, whose columns may be null.
 *
 * @param recipients a query for `email`, normalized by `toAddressKey`.
 */
export function selectRecipientViolations(recipients: RawBuilder<unknown>): RawBuilder<RecipientViolation[]> {
  return sql`case
    when coalesce(cardinality(op.allowed_recipient_domains) + cardinality(op.blocked_recipient_domains), 0) = 0 then '[]'
    else (select coalesce(jsonb_agg(jsonb_build_object('email', r.email, 'policy',
        case when d.suffixes && op.blocked_recipient_domains then 'blocked_recipient_domains'
          else 'allowed_recipient_domains' end)), '[]')
      from (${recipients}) r
        cross join lateral (select array(
          select array_to_string(l.labels[n:], '.')
          from (select string_to_array(split_part(r.email, '@', -1), '.') as labels) l, generate_subscripts(l.labels, 1) n
        ) as suffixes) d
      where d.suffixes && op.blocked_recipient_domains
        or cardinality(op.allowed_recipient_domains) > 0 and not d.suffixes && op.allowed_recipient_domains) end`;
}
