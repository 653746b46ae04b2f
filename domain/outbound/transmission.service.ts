import type { Database } from '../../platform/database/database.ts';
import type { MailTransport } from '../../platform/mail-transport/mail-transport.ts';
import type { SimulatorTransport } from '../../platform/mail-transport/simulator-transport.ts';
import type { ReturnPaths } from '../../platform/return-path.ts';
import type { Storage } from '../../platform/storage.ts';
import { withRecipientToken } from '../delivery-reports/report-token.ts';
import type { DkimKeys } from '../domains/dkim-keys.ts';
import type { Recipient } from '../messages/recipient.entity.ts';
import { isSettled } from './message-status.ts';
import type { OutcomeService } from './outcome.service.ts';
import { beginAttempt, settleAttempt } from './send-attempts.ts';
import { createRawSource, ensureMimeStored, type OutgoingMessage } from './stored-mime.ts';

export interface TransmissionService {
  /**
   * One SMTP transaction for each recipient that has none settled. Before each an attempt row is committed, after each
   * its result is; a row found open means somebody died in between, and becomes `ambiguous` instead of a second mail.
   *
   * @param aborted looked at between recipients: stop before the next one.
   */
  transmit(messageId: string, aborted: () => boolean): Promise<void>;
}

export interface TransmissionServiceOptions {
  database: Database;
  storage: Pick<Storage, 'putBytes' | 'putStream' | 'getStream' | 'getBytes'>;
  /** Sends the messages of production environments. */
  mailTransport: MailTransport;
  /** Takes the messages of sandbox environments, and those to the simulator's own addresses: nothing leaves. */
  simulator: SimulatorTransport;
  returnPaths: ReturnPaths;
  dkimKeys: DkimKeys;
  outcomes: OutcomeService;
}

export function createTransmissionService(options: TransmissionServiceOptions): TransmissionService {
  return { transmit: (messageId, aborted) => transmit(options, messageId, aborted) };
}

async function transmit(
  options: TransmissionServiceOptions,
  messageId: string,
  aborted: () => boolean,
): Promise<void> {
  const { database, storage, returnPaths, outcomes, dkimKeys } = options;
  const loaded = await loadTransmission(database, messageId);
  if (!loaded) return;
  const { message, recipients, sandbox } = loaded;
  const stored = await ensureMimeStored(database, storage, message, dkimKeys);
  const openRaw = createRawSource(storage, stored);
  const { simulator, mailTransport } = options;
  for (const recipient of recipients) {
    if (isSettled(recipient.status)) continue;
    if (aborted()) return;
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
    // Another worker took this one for dead and stopped the message; what it recorded is folded anew.
    if ((await settleAttempt(database, attempt, result)) === 'corrected')
      await database.systemTransaction((transaction) => outcomes.apply(transaction, message.id, []));
  }
}

type OutgoingRecipient = Pick<Recipient, 'position' | 'email' | 'status'>;

/** One statement and plain rows: it runs for every mail. */
async function loadTransmission(
  database: Database,
  messageId: string,
): Promise<{ message: OutgoingMessage; recipients: OutgoingRecipient[]; sandbox: boolean } | null> {
  const [row] = await database.statement<
    Omit<OutgoingMessage, 'createdAt'> & {
      createdAt: string;
      recipients: OutgoingRecipient[];
      sandbox: boolean;
    }
  >(
    `select m.id, m.org_id as "organizationId", m.from_email as "fromEmail", m.from_name as "fromName", m."to", m.cc,
       m.reply_to as "replyTo", m.subject, m.text_body as "textBody", m.html_body as "htmlBody", m.headers,
       m.has_attachments as "hasAttachments", m.rfc_message_id as "rfcMessageId", m.in_reply_to as "inReplyTo",
       m.reference_ids as "references", m.created_at as "createdAt", m.submitted_key as "submittedKey",
       m.raw_key as "rawKey", m.size_bytes as "sizeBytes", e.kind = 'sandbox' as sandbox,
       (select coalesce(jsonb_agg(jsonb_build_object('position', position, 'email', email, 'status', status)
          order by position), '[]')
        from message_recipients where message_id = m.id) as recipients
     from messages m join environments e on e.id = m.env_id where m.id = ?`,
    [messageId],
  );
  if (!row) return null;
  const { recipients, sandbox, ...message } = row;
  return { message: { ...message, createdAt: new Date(row.createdAt) }, recipients, sandbox };
}
