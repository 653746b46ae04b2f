import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { parseTimestamp, type SerializedRow } from '../../platform/database/serialized-row.ts';
import type { Message } from '../messages/message.entity.ts';
import type { Recipient } from '../messages/recipient.entity.ts';
import { createEmptyChanges, type OutcomeChanges } from './outcome-events.ts';
import type { SendAttempt } from './send-attempt.entity.ts';

/** Plain rows, because they are read and written for every sent message and entities are several times as expensive. */
export type OutcomeMessage = Pick<
  Message,
  | 'id'
  | 'organizationId'
  | 'environmentId'
  | 'inboxId'
  | 'threadId'
  | 'status'
  | 'statusDetail'
  | 'fromEmail'
  | 'subject'
  | 'rfcMessageId'
  | 'providerMessageId'
  | 'tracked'
  | 'createdAt'
  | 'queuedAt'
  | 'sentAt'
  | 'deliveredAt'
  | 'bouncedAt'
  | 'complainedAt'
>;
export type OutcomeRecipient = Pick<
  Recipient,
  'position' | 'field' | 'email' | 'status' | 'statusCode' | 'diagnosticCode' | 'sentAt' | 'updatedAt'
>;
export type OutcomeAttempt = Pick<
  SendAttempt,
  | 'position'
  | 'number'
  | 'state'
  | 'refusedScope'
  | 'statusCode'
  | 'response'
  | 'providerMessageId'
  | 'reportsDelivery'
  | 'simulated'
  | 'finishedAt'
  | 'recorded'
> & {
  /** The state as it was read: the transmitting worker may still correct an `ambiguous` attempt without the lock. */
  stateRead: SendAttempt['state'];
};

/** A locked message with its recipients and attempts, while outcomes are applied to it. */
export interface OutcomeState {
  message: OutcomeMessage;
  recipients: OutcomeRecipient[];
  /** Attempts that are not recorded yet, and ambiguous ones. */
  attempts: OutcomeAttempt[];
  /** The attempts that this update records. */
  recorded: OutcomeAttempt[];
  changes: OutcomeChanges;
  now: Date;
}

const MESSAGE_COLUMNS = sql`id, org_id as "organizationId", env_id as "environmentId", inbox_id as "inboxId",
  thread_id as "threadId", status, status_detail as "statusDetail", from_email as "fromEmail", subject,
  rfc_message_id as "rfcMessageId", provider_message_id as "providerMessageId", tracked, created_at as "createdAt",
  queued_at as "queuedAt", sent_at as "sentAt", delivered_at as "deliveredAt", bounced_at as "bouncedAt",
  complained_at as "complainedAt"`;
const RECIPIENT_FIELDS = sql`'position', position, 'field', field, 'email', email, 'status', status, 'statusCode', status_code,
  'diagnosticCode', diagnostic_code, 'sentAt', sent_at, 'updatedAt', updated_at`;
const ATTEMPT_FIELDS = sql`'position', position, 'number', number, 'state', state, 'stateRead', state,
  'refusedScope', refused_scope, 'statusCode', status_code, 'response', response,
  'providerMessageId', provider_message_id, 'reportsDelivery', reports_delivery, 'simulated', simulated,
  'finishedAt', finished_at, 'recorded', recorded`;

/**
 * Locks the message until the transaction ends, then reads its recipients and attempts in a second statement, which
 * sees what the previous lock holder committed.
 *
 * @returns null if the message does not exist.
 */
export async function lockOutcomeState(em: EntityManager, messageId: string): Promise<OutcomeState | null> {
  const [message] = await em.execute<SerializedRow<OutcomeMessage>[]>(
    sql`select ${MESSAGE_COLUMNS} from messages where id = ${messageId} for update`,
  );
  if (!message) return null;
  const [parts] = await em.execute<
    { recipients: SerializedRow<OutcomeRecipient>[]; attempts: SerializedRow<OutcomeAttempt>[] }[]
  >(
    sql`select
       (select coalesce(jsonb_agg(jsonb_build_object(${RECIPIENT_FIELDS}) order by position), '[]')
        from message_recipients where message_id = ${messageId}) as recipients,
       (select coalesce(jsonb_agg(jsonb_build_object(${ATTEMPT_FIELDS}) order by position, number), '[]')
        from send_attempts where message_id = ${messageId} and (not recorded or state = 'ambiguous')) as attempts`,
  );
  const { recipients = [], attempts = [] } = parts ?? {};
  return {
    message: {
      ...message,
      createdAt: new Date(message.createdAt),
      queuedAt: parseTimestamp(message.queuedAt),
      sentAt: parseTimestamp(message.sentAt),
      deliveredAt: parseTimestamp(message.deliveredAt),
      bouncedAt: parseTimestamp(message.bouncedAt),
      complainedAt: parseTimestamp(message.complainedAt),
    },
    recipients: recipients.map((recipient) => ({
      ...recipient,
      sentAt: parseTimestamp(recipient.sentAt),
      updatedAt: new Date(recipient.updatedAt),
    })),
    attempts: attempts.map((attempt) => ({ ...attempt, finishedAt: parseTimestamp(attempt.finishedAt) })),
    recorded: [],
    changes: createEmptyChanges(),
    now: new Date(),
  };
}

const toIsoTime = (time: Date | null) => time?.toISOString() ?? null;

/** Writes the message, the changed recipients and the newly recorded attempts in one statement. */
export async function saveOutcomeState(
  em: EntityManager,
  { message, recipients, recorded, now }: OutcomeState,
): Promise<void> {
  const changed = recipients.filter(({ updatedAt }) => updatedAt === now);
  const { id, status, statusDetail, providerMessageId, tracked } = message;
  await em.execute(
    sql`with changed as (
       update message_recipients r
       set status = v.status, status_code = v."statusCode", diagnostic_code = v."diagnosticCode",
         sent_at = v."sentAt", updated_at = v."updatedAt"
       from jsonb_to_recordset(${JSON.stringify(changed)}::jsonb) as v(
         position int, status text, "statusCode" text, "diagnosticCode" text,
         "sentAt" timestamptz, "updatedAt" timestamptz)
       where r.message_id = ${id} and r.position = v.position),
     recorded as (
       update send_attempts a set state = v.state, finished_at = v."finishedAt", recorded = true
       from jsonb_to_recordset(${JSON.stringify(recorded)}::jsonb) as v(
         position int, number int, state text, "stateRead" text,
         "finishedAt" timestamptz)
       where a.message_id = ${id} and a.position = v.position and a.number = v.number and a.state = v."stateRead")
     update messages
     set status = ${status}, status_detail = ${statusDetail}, provider_message_id = ${providerMessageId},
       tracked = ${tracked}, updated_at = ${now.toISOString()},
       sent_at = coalesce(sent_at, ${toIsoTime(message.sentAt)}),
       delivered_at = coalesce(delivered_at, ${toIsoTime(message.deliveredAt)}),
       bounced_at = coalesce(bounced_at, ${toIsoTime(message.bouncedAt)}),
       complained_at = coalesce(complained_at, ${toIsoTime(message.complainedAt)})
     where id = ${id}`,
  );
}
