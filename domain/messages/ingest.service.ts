import { LockMode } from '@mikro-orm/core';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { refusesValue } from '../../platform/database/failures.ts';
import { newId } from '../../platform/ids.ts';
import { createSlots } from '../../platform/slots.ts';
import type { Storage } from '../../platform/storage.ts';
import { AttachmentEntity } from '../attachments/attachment.entity.ts';
import { addToThread, startThread } from '../threads/thread-summary.ts';
import type { EventService } from '../webhooks/event.service.ts';
import { announceReceived } from './announce-received.ts';
import { isAutomated } from './automated.ts';
import { findThread } from './find-thread.ts';
import { messageIdOfReceipt } from './inbound-ids.ts';
import { type Message, MessageEntity } from './message.entity.ts';
import type { OutcomeService } from './outcome.service.ts';
import { unreadMail } from './parsed-mail.ts';
import type { MailReader, ReadMail } from './parser-pool.ts';
import { previewOf } from './preview.ts';
import { type Receipt, ReceiptEntity } from './receipt.entity.ts';
import { outcomesOf } from './reported-outcomes.ts';

export interface IngestService {
  /**
   * Makes a stored, threaded, announced message of a received mail, or folds the delivery report it is. A report
   * nobody can read is kept as mail. May run again at any time: the receipt says what is done, and the ids of what is
   * stored follow from its own.
   *
   * @returns what became of it.
   */
  ingest(receiptId: string): Promise<string>;
}

export interface IngestServiceOptions {
  database: Database;
  storage: Pick<Storage, 'getStream' | 'putStream'>;
  outcomes: OutcomeService;
  events: EventService;
  /** `Action: relayed` counts as delivered (the next hop cannot report). */
  relayedIsDelivered: boolean;
  reader: Pick<MailReader, 'read'>;
  /** Fewer than the reader's processes, so that small mail never waits for large. */
  largeMailsAtOnce: number;
}

/** A mail's text is in memory several times while it is read; a smaller one is kept whole, and read from storage once. */
const LARGE_MAIL_BYTES = 1024 * 1024;

export function createIngestService(options: IngestServiceOptions): IngestService {
  const { database } = options;
  const largeMails = createSlots(options.largeMailsAtOnce);
  return {
    async ingest(receiptId) {
      const receipt = await database.autocommit((em) => em.findOne(ReceiptEntity, { id: receiptId }));
      if (!receipt) return 'gone';
      if (receipt.status === 'processed') return 'processed before';
      if (receipt.kind === 'report' && (await ingestReport(options, receipt))) return 'report folded';
      if (receipt.sizeBytes <= LARGE_MAIL_BYTES) return ingestMail(options, receipt);
      const release = await largeMails.take();
      return ingestMail(options, receipt).finally(release);
    },
  };
}

/** @returns false where the mail is no delivery report. */
async function ingestReport(options: IngestServiceOptions, receipt: Receipt): Promise<boolean> {
  const { database, storage, outcomes, relayedIsDelivered } = options;
  const reported = await outcomesOf(await storage.getStream(receipt.rawKey), {
    position: receipt.recipientPosition ?? 0,
    relayedIsDelivered,
  });
  if (!reported) return false;
  return database.systemTransaction(async (transaction) => {
    if (await finish(transaction, receipt.id)) await outcomes.fold(transaction, receipt.messageId, reported);
    return true;
  });
}

async function ingestMail(options: IngestServiceOptions, receipt: Receipt): Promise<string> {
  const { storage, reader } = options;
  const messageId = messageIdOfReceipt(receipt.id);
  const mail = await reader.read(await storage.getStream(receipt.rawKey), {
    async storeFile(index, content, contentType) {
      const key = `attachments/${messageId}/${index}`;
      return { key, stored: await storage.putStream(key, content, { contentType }) };
    },
  });
  try {
    return await keep(options, receipt, mail);
  } catch (error) {
    // It would be refused again for ever, and nobody see the mail.
    if (!refusesValue(error)) throw error;
    const unread = unreadMail('The mail holds something that cannot be stored.');
    return keep(options, receipt, { ...unread, extractedText: '' });
  }
}

async function keep(options: IngestServiceOptions, receipt: Receipt, mail: ReadMail): Promise<string> {
  return options.database.systemTransaction(async (transaction) => {
    if (!(await finish(transaction, receipt.id))) return 'processed before';
    const message = await store(transaction, receipt, mail);
    await announceReceived(transaction, options.events, message);
    return `stored as ${message.id}`;
  });
}

/** Marks the receipt as processed. @returns false where another run was faster. */
async function finish({ em }: Transaction, receiptId: string): Promise<boolean> {
  const changed = await em.nativeUpdate(
    ReceiptEntity,
    { id: receiptId, status: 'received' },
    { status: 'processed', processedAt: new Date() },
  );
  return changed === 1;
}

async function store({ em }: Transaction, receipt: Receipt, mail: ReadMail): Promise<Message> {
  const messageId = messageIdOfReceipt(receipt.id);
  const { organizationId, environmentId, inboxId } = receipt;
  const from = mail.from ?? { email: receipt.mailFrom };
  const { subject, extractedText } = mail;
  const thread =
    (await findThread(em, { inboxId, mail, from, at: receipt.receivedAt }, LockMode.PESSIMISTIC_WRITE)) ??
    startThread(em, {
      inbox: { id: inboxId, organizationId, environmentId },
      subject,
      at: receipt.receivedAt,
    });
  const message = em.create(MessageEntity, {
    id: messageId,
    organizationId: receipt.organizationId,
    environmentId: receipt.environmentId,
    inboxId: receipt.inboxId,
    threadId: thread.id,
    direction: 'inbound',
    status: 'received',
    fromEmail: from.email,
    fromName: from.name ?? null,
    to: mail.to,
    cc: mail.cc,
    bcc: [],
    replyTo: mail.replyTo,
    subject,
    preview: previewOf(extractedText, mail.html),
    textBody: mail.text,
    htmlBody: mail.html,
    extractedText,
    headers: mail.headers,
    hasAttachments: mail.attachments.length > 0,
    rfcMessageId: mail.messageId,
    inReplyTo: mail.inReplyTo,
    references: mail.references,
    automated: isAutomated(mail.headers, receipt.mailFrom),
    announced: false,
    parseError: mail.parseError,
    rawKey: receipt.rawKey,
    sizeBytes: receipt.sizeBytes,
    createdAt: receipt.receivedAt,
    receivedAt: receipt.receivedAt,
  });
  em.persist(message);
  em.persist(
    mail.attachments.map(({ stored, ...part }, position) =>
      em.create(AttachmentEntity, {
        id: newId('attachment'),
        organizationId: receipt.organizationId,
        environmentId: receipt.environmentId,
        inboxId: receipt.inboxId,
        messageId,
        position,
        ...part,
        sizeBytes: stored.sizeBytes,
        sha256: stored.sha256,
        createdAt: receipt.receivedAt,
      }),
    ),
  );
  addToThread(thread, message, [from.email], receipt.receivedAt);
  return message;
}
