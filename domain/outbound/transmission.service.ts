import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { IS_RESTORE_PENDING_SQL, restorePending } from '../../platform/installation/pending-restore.ts';
import type { MailTransport } from '../../platform/mail-transport/mail-transport.ts';
import type { SimulatorTransport } from '../../platform/mail-transport/simulator-transport.ts';
import type { ReturnPaths } from '../../platform/return-path.ts';
import type { Storage } from '../../platform/storage.ts';
import { withRecipientToken } from '../delivery-reports/report-token.ts';
import type { DkimKeys } from '../domains/dkim-keys.ts';
import type { MessageStatus } from '../messages/message.entity.ts';
import type { Recipient } from '../messages/recipient.entity.ts';
import { isSettled } from './message-status.ts';
import type { OutcomeService } from './outcome.service.ts';
import { beginAttempt, settleAttempt } from './send-attempts.ts';
import { createRawSource, ensureMimeStored, type OutgoingMessage } from './stored-mime.ts';

export interface TransmissionService {
  /**
   * Runs one SMTP transaction per unsettled recipient. An attempt row is committed before each transaction, and its
   * result afterwards. An open row means that a worker crashed in between: it becomes `ambiguous`, and the message is
   * not sent twice.
   *
   * @param isAborted checked before each recipient.
   * @returns `interrupted` if it ended the loop before the last recipient.
   * @throws AppError `unavailable` until a restored database is reconciled.
   * @throws UnsendableMessageError if no message can be built from the stored data.
   */
  transmit(messageId: string, isAborted: () => boolean): Promise<'done' | 'interrupted'>;
}

export interface TransmissionServiceOptions {
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

export function createTransmissionService(options: TransmissionServiceOptions): TransmissionService {
  return { transmit: (messageId, isAborted) => transmit(options, messageId, isAborted) };
}

async function transmit(
  options: TransmissionServiceOptions,
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
      await database.systemTransaction((transaction) => outcomes.apply(transaction, message.id, []));
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
