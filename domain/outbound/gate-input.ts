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

const INBOX_COLUMNS = `o.status as organization_status, e.status as environment_status, i.status as inbox_status,
    i.send_paused, i.send_paused_reason, i.deleted_at is not null as deleted,
    t.id as thread_id, t.send_paused_until > now() as thread_paused, t.send_paused_until as thread_paused_until,
    i.domain_id is null or d.verification_status = 'verified' as domain_verified
  from inboxes i left join domains d on d.id = i.domain_id
    join environments e on e.id = i.env_id join organizations o on o.id = i.org_id`;

const SELECT_BY_INBOX = `select ${recipientRestrictionsSql('select value as email from jsonb_array_elements_text(?::jsonb)')} as recipients,
    ? as recipient_count, ${INBOX_COLUMNS} left join threads t on t.id = ? where i.id = ?`;

// Stored recipients are ASCII: lower case is all that their key differs by.
const SELECT_BY_MESSAGE = `select ${recipientRestrictionsSql(
  "select distinct lower(p.email) as email from message_recipients p where p.message_id = m.id and p.status in ('pending', 'deferred')",
)} as recipients, (select count(*)::int from message_recipients p where p.message_id = m.id) as recipient_count,
    ${INBOX_COLUMNS} join messages m on m.inbox_id = i.id join threads t on t.id = m.thread_id where m.id = ?`;

/**
 * Everything the gate looks at, in one statement: it runs twice for every message.
 *
 * @param recipients keys of the addresses the message is for, each once.
 * @param threadId null where the message starts a thread.
 */
export async function readGateInput(
  em: EntityManager,
  inboxId: string,
  recipients: string[],
  threadId: string | null,
): Promise<GateInput> {
  const [row] = await em.execute<GateRow[]>(SELECT_BY_INBOX, [
    JSON.stringify(recipients),
    recipients.length,
    threadId,
    inboxId,
  ]);
  if (!row) throw new Error(`The inbox ${inboxId} of a message is gone`);
  return toGateInput(row);
}

/** The same by a message, for those of its recipients it has still to be sent to. Null: there is no such message. */
export async function readGateInputOfMessage(
  em: EntityManager,
  messageId: string,
): Promise<GateInput | null> {
  const [row] = await em.execute<GateRow[]>(SELECT_BY_MESSAGE, [messageId]);
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
