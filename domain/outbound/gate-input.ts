import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Sql } from '../../platform/database/sql.ts';
import {
  type RecipientRestrictions,
  recipientRestrictionsSql,
} from '../deliverability/recipient-restrictions.ts';
import type { OrganizationStatus } from '../identity/authentication.ts';
import { ORGANIZATION_STATUS } from '../organizations/organization-status.ts';
import { unapprovedRecipientsSql } from '../policies/approval-recipients.ts';
import { DEFAULT_POLICIES } from '../policies/find-policies.ts';
import { type RecipientViolation, recipientViolationsSql } from '../policies/recipient-policies.ts';
import { IS_SUSPENDED_FOR_ABUSE } from '../suspensions/abuse-suspension.ts';
import { isOffSql } from '../toggles/find-toggle.ts';
import type { GateInput } from './send-gate.ts';

interface GateRow {
  isSwitchedOff: boolean;
  organizationStatus: OrganizationStatus;
  environmentStatus: 'active' | 'suspended';
  inboxStatus: 'active' | 'suspended';
  suspendedForAbuse: boolean;
  sendPaused: boolean;
  sendPausedReason: string | null;
  deleted: boolean;
  recipientCount: number;
  recipients: RecipientRestrictions[];
  threadId: string | null;
  threadPaused: boolean | null;
  threadPausedUntil: Date | string | null;
  domainVerified: boolean;
  recipientViolations: RecipientViolation[];
  maxRecipientsPerMessage: number | null;
  dailySendCapPerInbox: number | null;
  autoSubmittedHeader: boolean;
  unapprovedRecipients?: number;
}

const INBOX_COLUMNS = sql`${isOffSql('sending')} as "isSwitchedOff", ${ORGANIZATION_STATUS} as "organizationStatus", e.status as "environmentStatus", i.status as "inboxStatus",
    ${IS_SUSPENDED_FOR_ABUSE} as "suspendedForAbuse",
    i.send_paused as "sendPaused", i.send_paused_reason as "sendPausedReason", i.deleted_at is not null as deleted,
    t.id as "threadId", t.send_paused_until > now() as "threadPaused", t.send_paused_until as "threadPausedUntil",
    i.domain_id is null or d.verification_status = 'verified' as "domainVerified",
    op.max_recipients_per_message as "maxRecipientsPerMessage", op.daily_send_cap_per_inbox as "dailySendCapPerInbox",
    coalesce(op.auto_submitted_header, ${DEFAULT_POLICIES.autoSubmittedHeader}) as "autoSubmittedHeader"
  from inboxes i left join domains d on d.id = i.domain_id left join organization_policies op on op.org_id = i.org_id
    join environments e on e.id = i.env_id join organizations o on o.id = i.org_id`;

// Stored recipients are ASCII, so the lower-case form is the key.
const RECIPIENTS_OF_MESSAGE = sql`select distinct lower(p.email) as email from message_recipients p
    where p.message_id = m.id and p.status in ('pending', 'deferred')`;
const selectRecipients = (recipients: Sql) => sql`${recipientRestrictionsSql(recipients)} as recipients,
    ${recipientViolationsSql(recipients, sql`op`)} as "recipientViolations"`;
const selectByMessage = (messageId: string) => sql`select ${selectRecipients(RECIPIENTS_OF_MESSAGE)},
    (select count(*)::int from message_recipients p where p.message_id = m.id) as "recipientCount",
    ${INBOX_COLUMNS} join messages m on m.inbox_id = i.id join threads t on t.id = m.thread_id where m.id = ${messageId}`;

/**
 * Reads everything the send gate needs in one statement, because the gate runs twice for every message.
 *
 * @param recipients distinct address keys of the message's recipients.
 * @param threadId null if the message starts a thread.
 */
export async function readGateInput(
  em: EntityManager,
  inboxId: string,
  recipients: string[],
  threadId: string | null,
): Promise<GateInput> {
  const emails = sql`select value as email from jsonb_array_elements_text(${JSON.stringify(recipients)}::jsonb)`;
  const [row] = await em.execute<GateRow[]>(sql`
    select ${selectRecipients(emails)}, ${unapprovedRecipientsSql(emails, sql`op`)} as "unapprovedRecipients",
      ${recipients.length} as "recipientCount", ${INBOX_COLUMNS} left join threads t on t.id = ${threadId}
      where i.id = ${inboxId}`);
  if (!row) throw new Error(`Inbox ${inboxId} does not exist`);
  return toGateInput(row);
}

/** Reads the gate input for the unsent recipients of a message. Returns null if the message does not exist. */
export async function readGateInputOfMessage(
  em: EntityManager,
  messageId: string,
): Promise<GateInput | null> {
  const [row] = await em.execute<GateRow[]>(selectByMessage(messageId));
  return row ? toGateInput(row) : null;
}

function toGateInput(row: GateRow): GateInput {
  return {
    isSwitchedOff: row.isSwitchedOff,
    organization: { status: row.organizationStatus },
    environment: { status: row.environmentStatus },
    suspendedForAbuse: row.suspendedForAbuse,
    inbox: {
      status: row.inboxStatus,
      sendPaused: row.sendPaused,
      sendPausedReason: row.sendPausedReason,
      deleted: row.deleted,
      domainVerified: row.domainVerified,
    },
    recipientCount: row.recipientCount,
    recipients: row.recipients,
    policies: {
      recipientViolations: row.recipientViolations,
      maxRecipientsPerMessage: row.maxRecipientsPerMessage,
      dailySendCapPerInbox: row.dailySendCapPerInbox,
      autoSubmittedHeader: row.autoSubmittedHeader,
      unapprovedRecipients: row.unapprovedRecipients ?? 0,
    },
    thread:
      row.threadId === null
        ? null
        : {
            isPaused: row.threadPaused === true,
            pausedUntil: row.threadPausedUntil === null ? null : new Date(row.threadPausedUntil),
          },
  };
}
