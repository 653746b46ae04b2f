import { setTimeout as pause } from 'node:timers/promises';
import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import { IS_RESTORE_PENDING_SQL, restorePending } from '../../platform/installation/pending-restore.ts';
import type {
  ImmediateReport,
  MailTransport,
  TransmissionResult,
} from '../../platform/mail-transport/mail-transport.ts';
import type { SimulatorTransport } from '../../platform/mail-transport/simulator-transport.ts';
import type { ReturnPaths } from '../../platform/return-path.ts';
import type { Storage } from '../../platform/storage.ts';
import { withRecipientToken } from '../delivery-reports/report-token.ts';
import type { DkimKeys } from '../domains/dkim-keys.ts';
import type { Message, MessageStatus } from '../messages/message.entity.ts';
import type { Recipient } from '../messages/recipient.entity.ts';
import { isSettled } from './message-status.ts';
import { type OutcomeService, recordSend } from './outcome.service.ts';
import { type SendAttempt, SendAttemptEntity, type SimulatedOutcome } from './send-attempt.entity.ts';
import { createRawSource, ensureMimeStored, type OutgoingMessage } from './stored-mime.ts';

export interface TransmissionOptions {
  database: Database;
  storage: Pick<Storage, 'putBytes' | 'putStream' | 'getStream' | 'getBytes'>;
  /** Sends the messages of production environments. */
  mailTransport: MailTransport;
  /** Handles the messages of sandbox environments and those to the simulator's addresses. It sends nothing. */
  simulator: SimulatorTransport;
  returnPaths: ReturnPaths;
  dkimKeys: DkimKeys;
  outcomes: OutcomeService;
}

/**
 * Runs one SMTP transaction per unsettled recipient. An attempt row is committed before each transaction, and its result
 * afterwards. An open row means that a worker crashed in between: it becomes `ambiguous`, and the message is not sent
 * twice.
 *
 * @param isAborted checked before each recipient.
 * @returns `interrupted` if it ended the loop before the last recipient.
 * @throws AppError `unavailable` until a restored database is reconciled.
 * @throws UnsendableMessageError if no message can be built from the stored data.
 */
export async function transmitMessage(
  options: TransmissionOptions,
  messageId: string,
  isAborted: () => boolean,
): Promise<'done' | 'interrupted'> {
  const { database, storage, returnPaths, outcomes, dkimKeys } = options;
  const loaded = await loadTransmission(database, messageId);
  if (!loaded) return 'done';
  if (loaded.isRestorePending) throw restorePending();
  const { message, recipients, sandbox } = loaded;
  // Canceled while this step was waiting for its retry.
  if (loaded.status === 'canceled') return 'done';
  const stored = await ensureMimeStored(database, storage, message, dkimKeys);
  const openRaw = createRawSource(storage, stored);
  const { simulator, mailTransport } = options;
  for (const recipient of recipients) {
    if (isSettled(recipient.status)) continue;
    if (isAborted()) return 'interrupted';
    const attempt = await beginAttempt(database, message, recipient.position);
    if (!attempt) continue;
    const transport = sandbox || simulator.isSimulatorAddress(recipient.email) ? simulator : mailTransport;
    const sender = returnPaths.create(message.id, recipient.position);
    const result = await transport.transmit({
      sender,
      recipient: recipient.email,
      ...withRecipientToken({ openRaw, sizeBytes: stored.sizeBytes }, sender),
      envelopeId: `${message.id}.${recipient.position}`,
    });
    // Another worker assumed that this one had crashed and recorded the attempt as ambiguous. Apply the real result.
    if ((await settleAttempt(database, attempt, result)) === 'corrected')
      await recordSend(database, outcomes, message.id);
  }
  return 'done';
}

type OutgoingRecipient = Pick<Recipient, 'position' | 'email' | 'status'>;

interface LoadedTransmission {
  message: OutgoingMessage;
  status: MessageStatus;
  recipients: OutgoingRecipient[];
  sandbox: boolean;
  /** The message may have been sent before the database was restored. */
  isRestorePending: boolean;
}

/** One statement and plain rows, because it runs for every message. */
async function loadTransmission(database: Database, messageId: string): Promise<LoadedTransmission | null> {
  const [row] = await database.query<
    Omit<OutgoingMessage, 'createdAt'> & Omit<LoadedTransmission, 'message'> & { createdAt: string }
  >(
    sql`select m.id, m.status, m.org_id as "organizationId", m.from_email as "fromEmail", m.from_name as "fromName", m."to", m.cc,
       m.reply_to as "replyTo", m.subject, m.text_body as "textBody", m.html_body as "htmlBody", m.headers,
       m.has_attachments as "hasAttachments", m.rfc_message_id as "rfcMessageId", m.in_reply_to as "inReplyTo",
       m.reference_ids as "references", m.auto_submitted as "autoSubmitted", m.created_at as "createdAt", m.submitted_key as "submittedKey",
       m.raw_key as "rawKey", m.size_bytes as "sizeBytes", e.kind = 'sandbox' as sandbox,
       ${IS_RESTORE_PENDING_SQL} as "isRestorePending",
       (select coalesce(jsonb_agg(jsonb_build_object('position', position, 'email', email, 'status', status)
          order by position), '[]')
        from message_recipients where message_id = m.id) as recipients
     from messages m join environments e on e.id = m.env_id where m.id = ${messageId}`,
  );
  if (!row) return null;
  const { status, recipients, sandbox, isRestorePending, ...message } = row;
  return {
    message: { ...message, createdAt: new Date(row.createdAt) },
    status,
    recipients,
    sandbox,
    isRestorePending,
  };
}

export type AttemptKey = Pick<SendAttempt, 'messageId' | 'position' | 'number'>;

const MAX_RESPONSE_CHARACTERS = 1_000;
/** Recording is retried for a long time, because an attempt without a recorded result becomes ambiguous. */
const MAX_SETTLE_TRIES = 120;
const SETTLE_PAUSE_MS = 1_000;

/**
 * Commits the `attempting` row in one statement, under the message's lock: a message that is canceled in the meantime
 * is no longer `sending` when the lock is granted. Two concurrent calls get the same number, and the primary key allows
 * only one of them.
 *
 * @returns null if nothing may be sent: the message is no longer `sending`, the recipient was canceled, or the last attempt does not allow another
 * one. An open attempt belongs to a crashed worker and becomes `ambiguous`.
 */
export function beginAttempt(
  database: Database,
  message: Pick<Message, 'id'>,
  position: number,
): Promise<AttemptKey | null> {
  return database.autocommit(async (em) => {
    const [begun] = await em.execute<{ number: number }[]>(
      // Locks the recipient too, so that one canceled in the meantime is no longer open when the lock is granted.
      sql`with sending as (
         select m.id, m.org_id from messages m
         join message_recipients r on r.message_id = m.id and r.position = ${position}
         where m.id = ${message.id} and m.status = 'sending' and r.status in ('pending', 'deferred')
         for update of m, r),
         last as (select number, state from send_attempts where message_id = ${message.id} and position = ${position}
                  order by number desc limit 1)
       insert into send_attempts (message_id, position, number, org_id, state, started_at)
       select sending.id, ${position}, coalesce(last.number, 0) + 1, sending.org_id, 'attempting', now()
       from sending left join last on true
       where last.state is null or last.state = 'deferred'
       returning number`,
    );
    if (begun) return { messageId: message.id, position, number: begun.number };
    await em.nativeUpdate(
      SendAttemptEntity,
      { messageId: message.id, position, state: 'attempting' },
      {
        state: 'ambiguous',
        response: 'The worker crashed before it recorded the relay’s response.',
        finishedAt: new Date(),
      },
    );
    return null;
  });
}

/**
 * Commits the result of an attempt. It retries for two minutes, and corrects an attempt that another worker has since
 * marked ambiguous.
 *
 * @returns `corrected` in that case: the ambiguity may already be applied to the message.
 * @throws the database error after the last retry.
 */
export async function settleAttempt(
  database: Database,
  key: AttemptKey,
  result: TransmissionResult,
): Promise<'settled' | 'corrected'> {
  const columns = { ...toColumns(result), finishedAt: new Date(), recorded: false };
  for (let tries = 1; ; tries += 1) {
    try {
      return await database.autocommit(async (em) => {
        if ((await em.nativeUpdate(SendAttemptEntity, { ...key, state: 'attempting' }, columns)) === 1)
          return 'settled';
        const changed = await em.nativeUpdate(SendAttemptEntity, { ...key, state: 'ambiguous' }, columns);
        return changed === 1 ? 'corrected' : 'settled';
      });
    } catch (error) {
      if (tries >= MAX_SETTLE_TRIES) throw error;
      await pause(SETTLE_PAUSE_MS);
    }
  }
}

function toColumns(result: TransmissionResult): Partial<SendAttempt> {
  const response = storableText(result.response, MAX_RESPONSE_CHARACTERS);
  switch (result.kind) {
    case 'accepted':
      return {
        state: 'accepted',
        response,
        statusCode: null,
        providerMessageId:
          result.providerMessageId === null ? null : storableText(result.providerMessageId, 255),
        reportsDelivery: result.reportsDelivery,
        simulated: result.reports?.map(toSimulatedOutcome) ?? null,
      };
    case 'deferred':
      return { state: 'deferred', response, statusCode: result.statusCode };
    case 'refused':
      return { state: 'refused', response, statusCode: result.statusCode, refusedScope: result.scope };
    case 'ambiguous':
      return { state: 'ambiguous', response, statusCode: null };
  }
}

function toSimulatedOutcome({ action, status, diagnosticCode }: ImmediateReport): SimulatedOutcome {
  return { kind: action === 'failed' ? 'bounced' : action, statusCode: status, diagnosticCode };
}
