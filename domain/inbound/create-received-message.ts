import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { AttachmentEntity } from '../attachments/attachment.entity.ts';
import { findReceiveListMatch } from '../deliverability/receive-lists.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import { isHidden } from '../messages/hidden-labels.ts';
import { type Message, MessageEntity, type SpamVerdict } from '../messages/message.entity.ts';
import { placeMessage } from '../messages/place-message.ts';
import type { Thread } from '../messages/thread.entity.ts';
import { addToThread } from '../messages/thread-summary.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import type { ParsedInboundMail } from '../mime/parser/pool.ts';
import { isAutoSubmitted } from './auto-submitted.ts';
import { deriveSignals } from './derive-signals.ts';
import { findThreadByReturnPath } from './find-thread-by-return-path.ts';
import { toMessageId } from './inbound-ids.ts';
import { pauseIfLooping } from './loop-guard.ts';
import type { Authentication } from './mail-authentication.ts';
import type { Receipt } from './receipt.entity.ts';

/** A parsed message with its authentication and spam results. */
export interface AnalyzedMail {
  mail: ParsedInboundMail;
  authentication: Authentication;
  spam: SpamVerdict;
}

/** Creates the message of a receipt in its thread. Does not announce it. */
export async function createReceivedMessage(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  receipt: Receipt,
  { mail, authentication, spam }: AnalyzedMail,
): Promise<Message> {
  const { em } = transaction;
  const { organizationId, environmentId, inboxId, receivedAt: at } = receipt;
  const from = mail.from ?? { email: receipt.mailFrom };
  const { arc, spf, dkim, dmarc, unread } = authentication;
  const listEffect = (await findReceiveListMatch(em, inboxId, storableText(from.email)))?.effect;
  // An allow-listed From is trusted only if DMARC passes; otherwise it may be forged.
  const isAllowListed = listEffect === 'allow' && dmarc === 'pass';
  const labels = [
    ...(listEffect === 'block' ? ['blocked'] : []),
    ...(spam.verdict === 'spam' && !isAllowListed ? ['spam'] : []),
    ...(dmarc === 'fail' ? ['unauthenticated'] : []),
  ];
  const place = await placeMessage(transaction, outbox, {
    inbox: { id: inboxId, organizationId, environmentId },
    mail,
    isTrusted: !isHidden(labels) && dmarc !== 'fail',
    correspondents: { from: from.email, others: findOtherRecipients(receipt, mail) },
    at,
    findOtherwise: () => findThreadByReturnPath(em, receipt),
  });
  const isNewParticipant = !place.isNew && !(await isKnownParticipant(em, place.thread, from));
  const id = toMessageId(receipt.id);
  const hasAttachments = mail.attachments.length > 0;
  const thread = await addToThread(transaction.db, place, {
    message: { id, direction: 'inbound', preview: mail.preview, labels, hasAttachments },
    correspondents: [from.email],
    at,
  });
  const automated = mail.isAutomatic || isAutoSubmitted(mail.headers, receipt.mailFrom);
  const message = em.create(MessageEntity, {
    id,
    organizationId,
    environmentId,
    inboxId,
    threadId: thread.id,
    direction: 'inbound',
    status: 'received',
    fromEmail: from.email,
    fromName: from.name ?? null,
    to: mail.to,
    cc: mail.cc,
    bcc: [],
    replyTo: mail.replyTo,
    subject: mail.subject,
    preview: mail.preview,
    textBody: mail.text,
    htmlBody: mail.html,
    extractedText: mail.extractedText,
    hiddenText: mail.hiddenText,
    headers: mail.headers,
    labels,
    hasAttachments,
    rfcMessageId: mail.messageId,
    inReplyTo: mail.inReplyTo,
    references: mail.references,
    authentication: { spf, dkim, dmarc, arc, ...(unread ? { unread } : {}) },
    spam,
    automated,
    announced: false,
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
    parseError: mail.parseError,
    rawKey: receipt.rawKey,
    sizeBytes: receipt.sizeBytes,
    createdAt: at,
    receivedAt: at,
  });
  em.persist(message);
  persistAttachments(em, receipt, mail);
  await pauseIfLooping(em, thread, at);
  return message;
}

/** The addresses in To and Cc, without the inbox's own. */
export function findOtherRecipients({ rcptTo }: Receipt, { to, cc }: ParsedInboundMail): string[] {
  const own = baseAddress(rcptTo);
  return [...to, ...cc].map(({ email }) => email).filter((email) => baseAddress(email) !== own);
}

/** Adds the files of a parsed message to it. */
export function persistAttachments(
  em: EntityManager,
  receipt: Receipt,
  { attachments }: ParsedInboundMail,
): void {
  em.persist(
    attachments.map(({ stored, ...part }, position) =>
      em.create(AttachmentEntity, {
        id: newId('attachment'),
        organizationId: receipt.organizationId,
        environmentId: receipt.environmentId,
        inboxId: receipt.inboxId,
        messageId: toMessageId(receipt.id),
        position,
        ...part,
        sizeBytes: stored.sizeBytes,
        sha256: stored.sha256,
        createdAt: receipt.receivedAt,
      }),
    ),
  );
}

/** Whether the address wrote or received a message of the thread. */
export async function isKnownParticipant(
  em: EntityManager,
  thread: Thread,
  { email }: MailAddress,
): Promise<boolean> {
  const address = email.toLowerCase();
  if (thread.participants.includes(address)) return true;
  const [row] = await em.execute<{ known: boolean }[]>(
    sql`select exists (
       select 1 from messages m, jsonb_array_elements(m."to" || m.cc || m.bcc) as entry
       where m.thread_id = ${thread.id} and lower(entry->>'email') = ${address}
     ) as known`,
  );
  return row?.known === true;
}
