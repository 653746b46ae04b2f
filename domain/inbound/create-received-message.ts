import { sql } from 'kysely';
import type { Transaction } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { findReceiveListMatch } from '../deliverability/list-match.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import { isHidden } from '../messages/hidden-labels.ts';
import type { Message, SpamVerdict } from '../messages/message.entity.ts';
import { placeMessage } from '../messages/place-message.ts';
import type { Thread } from '../messages/thread.entity.ts';
import { addToThread } from '../messages/thread-summary.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import type { ParsedInboundMail } from '../mime/parser/pool.ts';
import { deriveSignals, isAutoSubmitted } from './derive-signals.ts';
import { findingColumns } from './finding-columns.ts';
import { pauseIfLooping } from './loop-guard.ts';
import type { Authentication } from './mail-authentication.ts';
import { raiseAlarmOfMail } from './raise-alarm.ts';
import { type Receipt, toMessageId } from './receipt.entity.ts';

/** A parsed message with its authentication and spam results. */
export interface AnalyzedMail {
  mail: ParsedInboundMail;
  authentication: Authentication;
  spam: SpamVerdict;
}

/** The fields of a stored message that callers need. */
export type CreatedMessage = Pick<
  Message,
  | 'id'
  | 'organizationId'
  | 'environmentId'
  | 'inboxId'
  | 'threadId'
  | 'fromEmail'
  | 'to'
  | 'subject'
  | 'extractedText'
  | 'hasAttachments'
  | 'labels'
  | 'receivedAt'
  | 'createdAt'
>;

/** Creates the message of a receipt in its thread. The caller announces it, unless its labels hide it. */
export async function createReceivedMessage(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  receipt: Receipt,
  analyzed: AnalyzedMail,
): Promise<CreatedMessage> {
  const { db } = transaction;
  const { mail, authentication } = analyzed;
  const { organizationId, environmentId, inboxId, receivedAt: at } = receipt;
  const from = mail.from ?? { email: receipt.mailFrom };
  const labels = await findLabels(db, inboxId, from, analyzed);
  const place = await placeMessage(transaction, outbox, {
    inbox: { id: inboxId, organizationId, environmentId },
    mail,
    isTrusted: !isHidden(labels) && authentication.dmarc !== 'fail',
    correspondents: { from: from.email, others: findOtherRecipients(receipt, mail) },
    at,
    findOtherwise: () => findThreadByReturnPath(db, receipt),
  });
  const isNewParticipant = !place.isNew && !(await isKnownParticipant(db, place.thread, from));
  const message = {
    id: toMessageId(receipt.id),
    organizationId,
    environmentId,
    inboxId,
    threadId: place.thread.id,
    fromEmail: from.email,
    to: mail.to,
    subject: mail.subject,
    extractedText: mail.extractedText,
    hasAttachments: mail.attachments.length > 0,
    labels,
    receivedAt: at,
    createdAt: at,
  };
  const thread = await addToThread(db, place, {
    message: { ...message, direction: 'inbound', preview: mail.preview },
    correspondents: [from.email],
    at,
  });
  await pauseIfLooping(db, thread, at);
  await insertMessage(db, message, { receipt, from, isNewParticipant, ...analyzed });
  await insertAttachments(db, receipt, mail);
  await raiseAlarmOfMail(db, message, { mail, mailFrom: receipt.mailFrom });
  return message;
}

async function findLabels(
  db: Db,
  inboxId: string,
  from: MailAddress,
  { authentication: { dmarc }, spam }: AnalyzedMail,
): Promise<string[]> {
  const listEffect = (await findReceiveListMatch(db, inboxId, storableText(from.email)))?.effect;
  // An allow-listed From is trusted only if DMARC passes; otherwise it may be forged.
  const isAllowListed = listEffect === 'allow' && dmarc === 'pass';
  return [
    ...(listEffect === 'block' ? ['blocked'] : []),
    ...(spam.verdict === 'spam' && !isAllowListed ? ['spam'] : []),
    ...(dmarc === 'fail' ? ['unauthenticated'] : []),
  ];
}

/**
 * Mail to a return path that is not a report, such as an auto-reply, belongs to the thread of the message in the token.
 *
 * @returns the thread's id.
 */
async function findThreadByReturnPath(
  db: Db,
  { kind, messageId, inboxId }: Pick<Receipt, 'kind' | 'messageId' | 'inboxId'>,
): Promise<string | null> {
  if (kind !== 'report') return null;
  const message = await db
    .selectFrom('messages')
    .select('thread_id as threadId')
    .where('id', '=', messageId)
    .where('inbox_id', '=', inboxId)
    .executeTakeFirst();
  return message?.threadId ?? null;
}

interface ReceivedContent extends AnalyzedMail {
  receipt: Receipt;
  from: MailAddress;
  isNewParticipant: boolean;
}

async function insertMessage(
  db: Db,
  message: CreatedMessage,
  { receipt, mail, authentication, spam, from, isNewParticipant }: ReceivedContent,
): Promise<void> {
  const { arc, spf, dkim, dmarc, unread } = authentication;
  const automated = mail.isAutomatic || isAutoSubmitted(mail.headers, receipt.mailFrom);
  await db
    .insertInto('messages')
    .values({
      id: message.id,
      org_id: message.organizationId,
      env_id: message.environmentId,
      inbox_id: message.inboxId,
      thread_id: message.threadId,
      direction: 'inbound',
      status: 'received',
      from_email: message.fromEmail,
      from_name: from.name ?? null,
      to: json(message.to),
      cc: json(mail.cc),
      bcc: json([]),
      reply_to: json(mail.replyTo),
      delivered_to: receipt.rcptTo.toLowerCase(),
      subject: message.subject,
      preview: mail.preview,
      text_body: mail.text,
      html_body: mail.html,
      extracted_text: message.extractedText,
      hidden_text: mail.hiddenText,
      headers: json(mail.headers),
      labels: message.labels,
      has_attachments: message.hasAttachments,
      rfc_message_id: mail.messageId,
      in_reply_to: mail.inReplyTo,
      reference_ids: mail.references,
      authentication: json({ spf, dkim, dmarc, arc, ...(unread ? { unread } : {}) }),
      spam: json(spam),
      automated,
      announced: !isHidden(message.labels),
      signals: deriveSignals({
        from,
        replyTo: mail.replyTo,
        automated,
        authentication,
        mailFrom: receipt.mailFrom,
        inboxEmail: baseAddress(receipt.rcptTo),
        hasHiddenText: mail.hiddenText !== null,
        hasMismatchedLink: mail.hasMismatchedLink,
        hasNoAuthor: mail.from === null,
        isNewParticipant,
      }),
      ...findingColumns(mail),
      parse_error: mail.parseError,
      raw_key: receipt.rawKey,
      size_bytes: receipt.sizeBytes,
      created_at: message.createdAt,
      received_at: message.receivedAt,
    })
    .execute();
}

/** The addresses in To and Cc, without the inbox's own. */
export function findOtherRecipients({ rcptTo }: Receipt, { to, cc }: ParsedInboundMail): string[] {
  const own = baseAddress(rcptTo);
  return [...to, ...cc].map(({ email }) => email).filter((email) => baseAddress(email) !== own);
}

/** Adds the files of a parsed message to it. */
export async function insertAttachments(
  db: Db,
  receipt: Receipt,
  { attachments }: ParsedInboundMail,
): Promise<void> {
  if (attachments.length === 0) return;
  await db
    .insertInto('attachments')
    .values(
      attachments.map(({ stored, ...part }, position) => ({
        id: newId('attachment'),
        org_id: receipt.organizationId,
        env_id: receipt.environmentId,
        inbox_id: receipt.inboxId,
        message_id: toMessageId(receipt.id),
        position,
        filename: part.filename,
        content_type: part.contentType,
        size_bytes: stored.sizeBytes,
        sha256: stored.sha256,
        storage_key: part.storageKey,
        content_id: part.contentId,
        disposition: part.disposition,
        created_at: receipt.receivedAt,
      })),
    )
    .execute();
}

/** Whether the address wrote or received a message of the thread. */
export async function isKnownParticipant(
  db: Db,
  thread: Pick<Thread, 'id' | 'participants'>,
  { email }: MailAddress,
): Promise<boolean> {
  const address = email.toLowerCase();
  if (thread.participants.includes(address)) return true;
  const message = await db
    .selectFrom('messages as m')
    .select('m.id')
    .where('m.thread_id', '=', thread.id)
    .where(
      sql<boolean>`exists (
        select from jsonb_array_elements(m."to" || m.cc || m.bcc) as entry where lower(entry->>'email') = ${address})`,
    )
    .limit(1)
    .executeTakeFirst();
  return message !== undefined;
}
