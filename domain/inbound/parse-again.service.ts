import { type Loaded, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Storage } from '../../platform/storage.ts';
import { PARSE_AGAIN, parseAgainWorkflowId } from '../../workflows/inbound/parse-again.contract.ts';
import { INBOUND_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import { findReceiveListMatch } from '../deliverability/receive-lists.ts';
import type { EventService } from '../events/event.service.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import { announceReceived } from '../messages/announce-received.ts';
import { isHidden } from '../messages/hidden-labels.ts';
import { type Message, MessageEntity } from '../messages/message.entity.ts';
import { refreshThreads } from '../messages/refresh-thread.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import type { ParsedInboundMail, ParserPool } from '../mime/parser/pool.ts';
import { insertUnclaimed } from '../stored-objects/unclaimed-objects.ts';
import { markUnclearAuthor } from './author-verdict.ts';
import { isAutoSubmitted } from './auto-submitted.ts';
import { persistAttachments } from './create-received-message.ts';
import { deriveSignals } from './derive-signals.ts';
import { followThread, lockFollowing } from './follow-thread.ts';
import { openRawMail } from './raw-mail.ts';
import { type Receipt, ReceiptEntity } from './receipt.entity.ts';

export interface ParseAgainService {
  /**
   * Parses a message with a `parse_error` from its raw bytes, and stores text, header and files. It joins the conversation
   * it belongs to, if nothing joined it meanwhile, and is announced again if it was announced without any content.
   * Idempotent: once it is parsed, nothing changes.
   *
   * @returns a description of the result.
   */
  parseAgain(messageId: string): Promise<string>;
}

export interface ParseAgainOptions {
  database: Database;
  storage: Pick<Storage, 'getStream' | 'putStream'>;
  outbox: Pick<Outbox, 'enqueue'>;
  events: EventService;
  parserPool: Pick<ParserPool, 'parse'>;
}

export function createParseAgainService(options: ParseAgainOptions): ParseAgainService {
  const { database, storage, parserPool } = options;
  return {
    async parseAgain(messageId) {
      const receipt = await database.autocommit((em) =>
        em.findOne(ReceiptEntity, { messageId, kind: 'mail' }),
      );
      if (!receipt) return 'gone';
      const raw = await openRawMail(storage, receipt);
      const mail = await parserPool.parse(await raw.open(), {
        organizationId: receipt.organizationId,
        async storeFile(index, content, contentType) {
          // Not the keys of the first try: an object must not change while a row refers to it.
          const key = `attachments/${messageId}/again-${Date.now()}-${index}`;
          return { key, stored: await storage.putStream(key, content, { contentType }) };
        },
      });
      return storeParsed(options, receipt, mail);
    },
  };
}

async function storeParsed(
  { database, outbox, events }: ParseAgainOptions,
  receipt: Receipt,
  mail: ParsedInboundMail,
): Promise<string> {
  return database.systemTransaction(async (transaction) => {
    const { em } = transaction;
    const release = async (result: string) => {
      const storageKeys = mail.attachments.map(({ storageKey }) => storageKey);
      if (storageKeys.length > 0) await insertUnclaimed(em, receipt.organizationId, { storageKeys });
      return result;
    };
    await lockFollowing(em, receipt.inboxId);
    const message = await em.findOne(MessageEntity, { id: receipt.messageId }, WITH_CONTENT);
    if (!message || message.parseError === null) return release(message ? 'already parsed' : 'gone');
    if (mail.parseError !== null) return release(`still cannot be parsed: ${mail.parseError}`);
    const from = mail.from ?? { email: receipt.mailFrom };
    const { dmarc } = verifyLate(message, mail);
    const late = await findLateLabels(em, receipt, { from, dmarc });
    // A label for the author that could not be read.
    const removed = message.authentication?.unread && dmarc !== 'fail' ? ['unauthenticated'] : [];
    const relabel = (labels: string[]) =>
      [...new Set([...labels, ...late])].filter((label) => !removed.includes(label));
    const isTrusted = dmarc !== 'fail' && !isHidden(relabel(message.labels));
    const followed = await followThread(transaction, outbox, { receipt, message, mail, from, isTrusted });
    // Its labels may have changed until its thread was locked.
    await em.refresh(message, WITH_CONTENT);
    if (!followed) return release('gone');
    const labels = relabel(message.labels);
    // Files that the first try stored belong to the message; the second try has all of them.
    await em.execute(sql`delete from attachments where message_id = ${message.id}`);
    const wasEmpty = message.announced && isEmpty(message);
    const { thread, isNewParticipant } = followed;
    const fields = parsedFields(message, { receipt, mail, from, isNewParticipant });
    await em.nativeUpdate(MessageEntity, { id: message.id }, { ...fields, labels });
    persistAttachments(em, receipt, mail);
    await em.flush();
    await refreshThreads(em, [thread.id]);
    if (!wasEmpty || isHidden(labels)) return 'parsed';
    const parsed = await em.findOneOrFail(
      MessageEntity,
      { id: message.id },
      { ...WITH_CONTENT, refresh: true },
    );
    await announceReceived(transaction, events, parsed);
    return 'parsed and announced';
  });
}

const WITH_CONTENT = { populate: ['textBody', 'htmlBody', 'extractedText'] } as const;

/** Nothing but a header, which is no content that a consumer could have acted on. */
function isEmpty({ textBody, htmlBody, hasAttachments }: Loaded<Message, 'textBody' | 'htmlBody'>): boolean {
  return !textBody && !htmlBody && !hasAttachments;
}

/** The labels that the header would have led to. */
async function findLateLabels(
  em: EntityManager,
  { inboxId }: Receipt,
  { from, dmarc }: { from: MailAddress; dmarc: string },
): Promise<string[]> {
  const listEffect = (await findReceiveListMatch(em, inboxId, storableText(from.email)))?.effect;
  return [...(listEffect === 'block' ? ['blocked'] : []), ...(dmarc === 'fail' ? ['unauthenticated'] : [])];
}

/** The result of DMARC for the author that the header names. */
function verifyLate({ authentication }: Message, mail: ParsedInboundMail) {
  return markUnclearAuthor(authentication?.unread ?? { dmarc: authentication?.dmarc ?? 'none' }, mail);
}

interface LateContent {
  receipt: Receipt;
  mail: ParsedInboundMail;
  from: MailAddress;
  isNewParticipant: boolean;
}

function parsedFields(message: Message, { receipt, mail, from, isNewParticipant }: LateContent) {
  const automated = mail.isAutomatic || isAutoSubmitted(mail.headers, receipt.mailFrom);
  const { spf = 'none', dkim = 'none', arc = 'none' } = message.authentication ?? {};
  const { dmarc } = verifyLate(message, mail);
  return {
    fromEmail: from.email,
    fromName: from.name ?? null,
    to: mail.to,
    cc: mail.cc,
    replyTo: mail.replyTo,
    subject: mail.subject,
    preview: mail.preview,
    textBody: mail.text,
    htmlBody: mail.html,
    extractedText: mail.extractedText,
    hiddenText: mail.hiddenText,
    headers: mail.headers,
    hasAttachments: mail.attachments.length > 0,
    rfcMessageId: mail.messageId,
    inReplyTo: mail.inReplyTo,
    references: mail.references,
    authentication: { spf, dkim, dmarc, arc },
    automated,
    signals: deriveSignals({
      from,
      replyTo: mail.replyTo,
      automated,
      authentication: { spf, dkim, dmarc },
      mailFrom: receipt.mailFrom,
      inboxEmail: baseAddress(receipt.rcptTo),
      hasHiddenText: mail.hiddenText !== null,
      hasMismatchedLink: mail.hasMismatchedLink,
      hasNoAuthor: mail.from === null,
      isNewParticipant,
    }),
    parseError: null,
    updatedAt: new Date(),
  };
}

/** Messages per transaction. */
const BATCH_SIZE = 500;

/**
 * Starts the workflow for each message that could not be parsed, or for one of them.
 *
 * @returns the number of started workflows.
 */
export async function startParsingAgain(
  { database, outbox }: { database: Database; outbox: Pick<Outbox, 'enqueue'> },
  { messageId, requestedAt = new Date() }: { messageId?: string; requestedAt?: Date } = {},
): Promise<number> {
  let started = 0;
  let after = '';
  for (;;) {
    const last = after;
    const rows = await database.systemTransaction(async (transaction) => {
      const found = await transaction.em.execute<UnparsedRow[]>(
        sql`select id, org_id as "organizationId", env_id as "environmentId", inbox_id as "inboxId" from messages
          where parse_error is not null and direction = 'inbound' and id > ${last}
            and ${messageId === undefined ? sql`true` : sql`id = ${messageId}`}
          order by id limit ${BATCH_SIZE}`,
      );
      for (const row of found)
        outbox.enqueue(transaction, row.organizationId, { start: buildParseAgainStart(row, requestedAt) });
      return found;
    });
    started += rows.length;
    after = rows.at(-1)?.id ?? '';
    if (rows.length < BATCH_SIZE) return started;
  }
}

type UnparsedRow = Pick<Message, 'id' | 'organizationId' | 'environmentId' | 'inboxId'>;

function buildParseAgainStart(
  { id, organizationId, environmentId, inboxId }: UnparsedRow,
  requestedAt: Date,
) {
  return {
    workflowType: PARSE_AGAIN,
    workflowId: parseAgainWorkflowId(id, requestedAt.toISOString()),
    taskQueue: INBOUND_QUEUE,
    priority: { priorityKey: PRIORITY.notification, fairnessKey: organizationId },
    input: { messageId: id },
    searchAttributes: { OrgId: organizationId, EnvId: environmentId, InboxId: inboxId, ResourceId: id },
    summary: `Parse ${id} again`,
  };
}
