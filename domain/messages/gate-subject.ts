import type { EntityManager } from '@mikro-orm/postgresql';
import type { GateSubject } from './send-gate.ts';

interface GateRow {
  organization_status: 'active' | 'suspended';
  environment_status: 'active' | 'suspended';
  inbox_status: 'active' | 'suspended';
  send_paused: boolean;
  send_paused_reason: string | null;
  deleted: boolean;
}

const GATE_OF_INBOX = `select o.status as organization_status, e.status as environment_status, i.status as inbox_status,
    i.send_paused, i.send_paused_reason, i.deleted_at is not null as deleted
  from inboxes i join environments e on e.id = i.env_id join organizations o on o.id = i.org_id`;

/** Everything the gate looks at, in one statement: it runs twice for every message. */
export async function readGateSubject(em: EntityManager, inboxId: string): Promise<GateSubject> {
  const [row] = await em.execute<GateRow[]>(`${GATE_OF_INBOX} where i.id = ?`, [inboxId]);
  if (!row) throw new Error(`The inbox ${inboxId} of a message is gone`);
  return subjectOf(row);
}

/** The same by a message. Null: there is no such message. */
export async function readGateSubjectOfMessage(
  em: EntityManager,
  messageId: string,
): Promise<GateSubject | null> {
  const [row] = await em.execute<GateRow[]>(
    `${GATE_OF_INBOX} join messages m on m.inbox_id = i.id where m.id = ?`,
    [messageId],
  );
  return row ? subjectOf(row) : null;
}

function subjectOf(row: GateRow): GateSubject {
  return {
    organization: { status: row.organization_status },
    environment: { status: row.environment_status },
    inbox: {
      status: row.inbox_status,
      sendPaused: row.send_paused,
      sendPausedReason: row.send_paused_reason,
      deleted: row.deleted,
    },
  };
}
