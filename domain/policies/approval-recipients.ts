import { type Expression, type RawBuilder, sql } from 'kysely';
import { requesterProblem } from '../identity/requester.ts';

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

/** SQL: the person who remembered the recipient `a` may still approve. */
const MAY_APPROVE = sql`${requesterProblem(
  { organizationId: sql.ref('a.org_id'), userId: sql.ref('a.approved_by'), keyId: sql<null>`null::text` },
  { act: 'approval' },
)} is null`;

/**
 * SQL: the number of recipients for whom the organization's policy `require_send_approval` asks a person, without those
 * that an approver, who may still approve, remembered for the inbox `i`. Part of the gate's single statement, in which `op`
 * is the row of `organization_policies`, whose columns may be null.
 *
 * @param recipients a query for `email`, normalized by `toAddressKey`.
 */
export function countUnapprovedRecipients(recipients: RawBuilder<unknown>): RawBuilder<number> {
  return sql`case when coalesce(op.require_send_approval, 'off') = 'off' then 0 else
    (select count(*)::int from (${recipients}) r
      where not exists (select from approved_recipients a
          where a.inbox_id = i.id and a.email = r.email and a.expires_at > now() and ${MAY_APPROVE})
        and (op.require_send_approval = 'all' or not ${isOwnAddress(sql.ref('r.email'))})) end`;
}
