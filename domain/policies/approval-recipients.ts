import { sql } from '@mikro-orm/core';
import { type Expression, type RawBuilder, sql as typedSql } from 'kysely';
import type { Sql } from '../../platform/database/sql.ts';
import { requesterProblemSql } from '../identity/requester-problem-sql.ts';

/**
 * SQL: whether `email` belongs to the organization of the inbox `i`: the address of an inbox, with or without a plus tag,
 * or any address of a verified domain.
 */
export function isOwnAddressSql(email: Sql): Sql {
  const domain = sql`split_part(${email}, '@', -1)`;
  return sql`(exists (select from inboxes own where own.deleted_at is null and own.org_id = i.org_id
        and own.email = split_part(split_part(${email}, '@', 1), '+', 1) || '@' || ${domain})
      or exists (select from domains own where own.org_id = i.org_id and own.verification_status = 'verified'
        and own.domain_name = ${domain}))`;
}

/** As {@link isOwnAddressSql}, in a typed statement. */
export function isOwnAddress(email: Expression<string>): RawBuilder<boolean> {
  const domain = typedSql`split_part(${email}, '@', -1)`;
  return typedSql`(exists (select from inboxes own where own.deleted_at is null and own.org_id = i.org_id
        and own.email = split_part(split_part(${email}, '@', 1), '+', 1) || '@' || ${domain})
      or exists (select from domains own where own.org_id = i.org_id and own.verification_status = 'verified'
        and own.domain_name = ${domain}))`;
}

/** SQL: the person who remembered the recipient `a` may still approve. */
const MAY_APPROVE = sql`${requesterProblemSql(
  { organizationId: sql`a.org_id`, userId: sql`a.approved_by`, keyId: sql`null::text` },
  { act: 'approval' },
)} is null`;

/**
 * SQL: the number of recipients for whom the organization's policy `require_send_approval` asks a person, without those
 * that an approver, who may still approve, remembered for the inbox `i`. Part of the gate's single statement.
 *
 * @param recipients a query for `email`, normalized by `toAddressKey`.
 * @param policies alias of the `organization_policies` row, whose columns may be null.
 */
export function unapprovedRecipientsSql(recipients: Sql, policies: Sql): Sql {
  const mode = sql`${policies}.require_send_approval`;
  return sql`case when coalesce(${mode}, 'off') = 'off' then 0 else
    (select count(*)::int from (${recipients}) r
      where not exists (select from approved_recipients a
          where a.inbox_id = i.id and a.email = r.email and a.expires_at > now() and ${MAY_APPROVE})
        and (${mode} = 'all' or not ${isOwnAddressSql(sql`r.email`)})) end`;
}
