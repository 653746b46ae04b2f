import type { Readable } from 'node:stream';
import { sql } from 'kysely';
import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Storage } from '../../platform/storage.ts';
import { PARSE_AGAIN, parseAgainWorkflowId } from '../../workflows/inbound/parse-again.contract.ts';
import { INBOUND_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import { findReceiveListMatch } from '../deliverability/list-match.ts';
import type { EventService } from '../events/event.service.ts';
import { baseAddress } from '../inboxes/inbox-address.ts';
import { announceReceived } from '../messages/announce-received.ts';
import { isHidden } from '../messages/hidden-labels.ts';
import { endAlarm } from '../messages/injection-alarms.ts';
import { type Message, MessageEntity } from '../messages/message.entity.ts';
import { refreshThreads } from '../messages/refresh-thread.ts';
import type { MailAddress } from '../mime/mail-address.ts';
import { FINDINGS_VERSION } from '../mime/message-findings.ts';
import type { ParsedInboundMail, ParserPool } from '../mime/parser/pool.ts';
import { insertUnclaimed } from '../stored-objects/unclaimed-objects.ts';
import { insertAttachments } from './create-received-message.ts';
import { deriveSignals, isAutoSubmitted } from './derive-signals.ts';
import { findingColumns } from './finding-columns.ts';
import { followThread, lockFollowing } from './follow-thread.ts';
import { markUnclearAuthor } from './mail-authentication.ts';
import { raiseAlarmOfMail } from './raise-alarm.ts';
import { openRawMail } from './raw-mail.ts';
import { type Receipt, ReceiptEntity } from './receipt.entity.ts';

export type ParseAgainService = ReturnType<typeof createParseAgainService>;

export interface ParseAgainOptions {
  database: Database;
  storage: Pick<Storage, 'getStream' | 'putStream'>;
  outbox: Pick<Outbox, 'enqueue'>;
  events: EventService;
  parserPool: Pick<ParserPool, 'parse'>;
}

export function createParseAgainService(options: ParseAgainOptions) {
  const { database, storage, parserPool } = options;
  return {
    /**
     * Parses a message with a `parse_error` from its raw bytes, and stores text, header and files. The message joins
     * the conversation it belongs to unless another message has joined its thread in the meantime. It is announced
     * again if it was announced without any content. A message that was parsed by an earlier version gets the codes,
     * links and invitations that this version finds. Idempotent: any other parsed message does not change.
     *
     * @returns a description of the result.
     */
    async parseAgain(messageId: string): Promise<string> {
      const receipt = await database.db
        .selectFrom('inbound_receipts')
        .select(columnsOf(ReceiptEntity))
        .where('message_id', '=', messageId)
        .where('kind', '=', 'mail')
        .limit(1)
        .executeTakeFirst();
      if (!receipt) return 'gone';
      const state = await findState(database.db, messageId);
      if (state === 'gone' || state === 'already parsed') return state;
      const raw = await openRawMail(storage, receipt);
      const { organizationId } = receipt;
      if (state === 'outdated') {
        const mail = await parserPool.parse(await raw.open(), { organizationId, storeFile: discardFile });
        return storeFindings(database, receipt, mail);
      }
      const mail = await parserPool.parse(await raw.open(), {
        organizationId,
        async storeFile(index, content, contentType) {
          // Different keys from the first attempt, because an object must not change while a row refers to it.
          const key = `attachments/${messageId}/again-${Date.now()}-${index}`;
          return { key, stored: await storage.putStream(key, content, { contentType }) };
        },
      });
      return storeParsed(options, receipt, mail);
    },
  };
}

type ParseState = 'unparsed' | 'outdated' | 'already parsed' | 'gone';

async function findState(db: Db, messageId: string): Promise<ParseState> {
  const message = await db
    .selectFrom('messages')
    .select(['parse_error as parseError', 'findings_version as findingsVersion'])
    .where('id', '=', messageId)
    .executeTakeFirst();
  if (!message) return 'gone';
  if (message.parseError !== null) return 'unparsed';
  return message.findingsVersion < FINDINGS_VERSION ? 'outdated' : 'already parsed';
}

/** Reads a file that is stored already. */
async function discardFile(_index: number, content: Readable) {
  for await (const _chunk of content);
  return { key: '', stored: { sizeBytes: 0, sha256: Buffer.alloc(0) } };
}

/** Stores what the present rules find. The content stays as it is, so `updated_at` does too, and nothing is announced. */
async function storeFindings(database: Database, receipt: Receipt, mail: ParsedInboundMail): Promise<string> {
  if (mail.parseError !== null) return `cannot be parsed: ${mail.parseError}`;
  return database.systemTransaction(async ({ db }) => {
    const message = await db
      .updateTable('messages')
      .set(findingColumns(mail))
      .where('id', '=', receipt.messageId)
      .where('parse_error', 'is', null)
      .where('findings_version', '<', FINDINGS_VERSION)
      .returning(columnsOf(MessageEntity))
      .executeTakeFirst();
    if (!message) return 'already parsed';
    await replaceAlarm(db, message, { receipt, mail });
    return 'codes and links found';
  });
}

/** The alarm of a message that was parsed again, unless a person has dismissed it. */
async function replaceAlarm(
  db: Db,
  message: RowOf<typeof MessageEntity>,
  { receipt: { receivedAt, mailFrom }, mail }: { receipt: Receipt; mail: ParsedInboundMail },
): Promise<void> {
  if (mail.injection.level !== 'alarm') await endAlarm(db, message.id);
  else if (message.injectionDismissedAt === null)
    await raiseAlarmOfMail(db, { ...message, receivedAt }, { mail, mailFrom });
}

async function storeParsed(
  { database, outbox, events }: ParseAgainOptions,
  receipt: Receipt,
  mail: ParsedInboundMail,
): Promise<string> {
  return database.systemTransaction(async (transaction) => {
    const { db } = transaction;
    const release = async (result: string) => {
      const storageKeys = mail.attachments.map(({ storageKey }) => storageKey);
      await insertUnclaimed(db, receipt.organizationId, { storageKeys });
      return result;
    };
    await lockFollowing(db, receipt.inboxId);
    const placed = await findMessage(db, receipt.messageId);
    if (!placed || placed.parseError === null) return release(placed ? 'already parsed' : 'gone');
    if (mail.parseError !== null) return release(`still cannot be parsed: ${mail.parseError}`);
    const from = mail.from ?? { email: receipt.mailFrom };
    const { dmarc } = verifyRecoveredAuthor(placed, mail);
    const late = await findRecoveredLabels(db, receipt, { from, dmarc });
    // The label was added because the author could not be read.
    const removed = placed.authentication?.unread && dmarc !== 'fail' ? ['unauthenticated'] : [];
    const relabel = (labels: readonly string[]) =>
      [...new Set([...labels, ...late])].filter((label) => !removed.includes(label));
    const isTrusted = dmarc !== 'fail' && !isHidden(relabel(placed.labels));
    const followed = await followThread(transaction, outbox, {
      receipt,
      message: placed,
      mail,
      from,
      isTrusted,
    });
    // The labels may have changed before the thread was locked.
    const message = await findMessage(db, placed.id);
    if (!followed || !message) return release('gone');
    const labels = relabel(message.labels);
    const wasEmpty = message.announced && isEmpty(message);
    const { thread, isNewParticipant } = followed;
    // Replaces the files of the first attempt, because this attempt has all of them.
    await db.deleteFrom('attachments').where('message_id', '=', message.id).execute();
    const parsed = await db
      .updateTable('messages')
      .set({ ...parsedFields(message, { receipt, mail, from, isNewParticipant }), labels })
      .where('id', '=', message.id)
      .returning(columnsOf(MessageEntity, { lazy: ['extractedText'] }))
      .executeTakeFirstOrThrow(() => new Error(`Message ${message.id} is gone`));
    await insertAttachments(db, receipt, mail);
    await replaceAlarm(db, parsed, { receipt, mail });
    await refreshThreads(db, [thread.id]);
    if (!wasEmpty || isHidden(labels)) return 'parsed';
    await announceReceived(transaction, events, parsed);
    return 'parsed and announced';
  });
}

type UnparsedMessage = RowOf<typeof MessageEntity, 'textBody' | 'htmlBody'>;

function findMessage(db: Db, id: string): Promise<UnparsedMessage | undefined> {
  return db
    .selectFrom('messages')
    .select(columnsOf(MessageEntity, { lazy: ['textBody', 'htmlBody'] }))
    .where('id', '=', id)
    .executeTakeFirst();
}

/** The message has only a header, so no consumer can have acted on its content. */
function isEmpty({ textBody, htmlBody, hasAttachments }: UnparsedMessage): boolean {
  return !textBody && !htmlBody && !hasAttachments;
}

/** The labels that the message would have got with its header. */
async function findRecoveredLabels(
  db: Db,
  { inboxId }: Receipt,
  { from, dmarc }: { from: MailAddress; dmarc: string },
): Promise<string[]> {
  const listEffect = (await findReceiveListMatch(db, inboxId, storableText(from.email)))?.effect;
  return [...(listEffect === 'block' ? ['blocked'] : []), ...(dmarc === 'fail' ? ['unauthenticated'] : [])];
}

/** The DMARC result for the author that the header names. */
function verifyRecoveredAuthor({ authentication }: UnparsedMessage, mail: ParsedInboundMail) {
  return markUnclearAuthor(authentication?.unread ?? { dmarc: authentication?.dmarc ?? 'none' }, mail);
}

interface LateContent {
  receipt: Receipt;
  mail: ParsedInboundMail;
  from: MailAddress;
  isNewParticipant: boolean;
}

function parsedFields(message: UnparsedMessage, { receipt, mail, from, isNewParticipant }: LateContent) {
  const automated = mail.isAutomatic || isAutoSubmitted(mail.headers, receipt.mailFrom);
  const { spf = 'none', dkim = 'none', arc = 'none' } = message.authentication ?? {};
  const { dmarc } = verifyRecoveredAuthor(message, mail);
  return {
    from_email: from.email,
    from_name: from.name ?? null,
    to: json(mail.to),
    cc: json(mail.cc),
    reply_to: json(mail.replyTo),
    subject: mail.subject,
    preview: mail.preview,
    text_body: mail.text,
    html_body: mail.html,
    extracted_text: mail.extractedText,
    hidden_text: mail.hiddenText,
    headers: json(mail.headers),
    has_attachments: mail.attachments.length > 0,
    rfc_message_id: mail.messageId,
    in_reply_to: mail.inReplyTo,
    reference_ids: mail.references,
    authentication: json({ spf, dkim, dmarc, arc }),
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
    ...findingColumns(mail),
    parse_error: null,
    updated_at: sql<Date>`now()`,
  };
}

/** Messages per transaction. */
const BATCH_SIZE = 500;

/**
 * Starts the workflow for each message that could not be parsed or that an earlier version parsed, or for one of them.
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
      const found = await transaction.db
        .selectFrom('messages')
        .select(['id', 'org_id as organizationId', 'env_id as environmentId', 'inbox_id as inboxId'])
        .where('direction', '=', 'inbound')
        .where((eb) =>
          eb.or([eb('parse_error', 'is not', null), eb('findings_version', '<', FINDINGS_VERSION)]),
        )
        .where('id', '>', last)
        .$if(messageId !== undefined, (query) => query.where('id', '=', messageId as string))
        .orderBy('id')
        .limit(BATCH_SIZE)
        .execute();
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
