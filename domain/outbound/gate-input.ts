import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import {
  type RecipientRestrictions,
  recipientRestrictionsSql,
} from '../deliverability/recipient-restrictions.ts';
import type { GateInput } from './send-gate.ts';

interface GateRow {
  organization_status: 'active' | 'suspended';
  environment_status: 'active' | 'suspended';
  inbox_status: 'active' | 'suspended';
  send_paused: boolean;
  send_paused_reason: string | null;
  deleted: boolean;
  recipient_count: number;
  recipients: RecipientRestrictions[];
  thread_id: string | null;
  thread_paused: boolean | null;
  thread_paused_until: Date | string | null;
  domain_verified: boolean;
}

const INBOX_COLUMNS = sql`o.status as organization_status, e.status as environment_status, i.status as inbox_status,
    i.send_paused, i.send_paused_reason, i.deleted_at is not null as deleted,
    t.id as thread_id, t.send_paused_until > now() as thread_paused, t.send_paused_until as thread_paused_until,
    i.domain_id is null or d.verification_status = 'verified' as domain_verified
  from inboxes i left join domains d on d.id = i.domain_id
    join environments e on e.id = i.env_id join organizations o on o.id = i.org_id`;

// Stored recipients are ASCII, so the lower-case form is the key.
const RECIPIENTS_OF_MESSAGE = recipientRestrictionsSql(
  sql`select distinct lower(p.email) as email from message_recipients p
    where p.message_id = m.id and p.status in ('pending', 'deferred')`,
);
const selectByMessage = (messageId: string) => sql`select ${RECIPIENTS_OF_MESSAGE} as recipients,
    (select count(*)::int from message_recipients p where p.message_id = m.id) as recipient_count,
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
  const [row] = await em.execute<GateRow[]>(sql`
    select ${recipientRestrictionsSql(sql`select value as email from jsonb_array_elements_text(${JSON.stringify(recipients)}::jsonb)`)} as recipients,
      ${recipients.length} as recipient_count, ${INBOX_COLUMNS} left join threads t on t.id = ${threadId}
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
    organization: { status: row.organization_status },
    environment: { status: row.environment_status },
    inbox: {
      status: row.inbox_status,
      sendPaused: row.send_paused,
      sendPausedReason: row.send_paused_reason,
      deleted: row.deleted,
      domainVerified: row.domain_verified,
    },
    recipientCount: row.recipient_count,
    recipients: row.recipients,
    thread:
      row.thread_id === null
        ? null
        : {
            isPaused: row.thread_paused === true,
            pausedUntil: row.thread_paused_until === null ? null : new Date(row.thread_paused_until),
          },
  };
}
