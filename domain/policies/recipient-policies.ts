import { type Expression, type RawBuilder, sql } from 'kysely';
import { requesterProblem } from '../identity/requester.ts';

/** A recipient that a policy does not allow. */
export interface RecipientViolation {
  /** Normalized by `toAddressKey`. */
  email: string;
  policy: 'allowed_recipient_domains' | 'blocked_recipient_domains';
}

/**
 * SQL: the recipients that a policy of the organization does not allow; empty without such policies. A domain includes its
 * subdomains, and blocked domains take precedence. Part of the gate's single statement, in which `op` is the row of
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

/**
 * SQL: whether `email` belongs to the organization of the inbox `i`: the address of an inbox, with or without a plus tag,
 * or any address of a verified domain.
 */
export function isOwnAddress(email: Expression<string>): RawBuilder<boolean> {
  const domain = sql`split_part(${email}, '@', -1)`;
  return sql`(exists (select from inboxes own where own.deleted_at is null and own.org_id = i.org_id
        and own.email = split_part(split_part(${email}, '@', 1), '+', 1) || '@' || ${domain})
      or exists (select from domains own where own.org_id = i.org_id and own.verification_status = 'verified'
        and own.domain_name = ${domain}))`;
}

/** SQL: the person who approved the remembered recipient `a` may still approve. */
const MAY_APPROVE = sql`${requesterProblem(
  { organizationId: sql.ref('a.org_id'), userId: sql.ref('a.approved_by'), keyId: sql<null>`null::text` },
  { act: 'approval' },
)} is null`;

/** SQL: the recipients of the inbox `i` for whom an approver, who may still approve, waived approval. */
export const REMEMBERED_RECIPIENTS = sql`select a.email from approved_recipients a
  where a.inbox_id = i.id and a.expires_at > now() and ${MAY_APPROVE}`;

/**
 * SQL: the number of recipients that need a person's approval under the organization's policy `require_send_approval`,
 * without those remembered for the inbox `i` by an approver who may still approve. Part of the gate's single statement, in
 * which `op` is the row of `organization_policies`, whose columns may be null.
 *
 * @param recipients a query for `email`, normalized by `toAddressKey`.
 */
export function countUnapprovedRecipients(recipients: RawBuilder<unknown>): RawBuilder<number> {
  return sql`case when coalesce(op.require_send_approval, 'off') = 'off' then 0 else
    (select count(*)::int from (${recipients}) r
      where not exists (${REMEMBERED_RECIPIENTS} and a.email = r.email)
        and (op.require_send_approval = 'all' or not ${isOwnAddress(sql.ref('r.email'))})) end`;
}
