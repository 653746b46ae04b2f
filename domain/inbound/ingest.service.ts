import type { Updateable } from 'kysely';
import {
  acquireBriefly,
  createFairShare,
  type FairShare,
  organizationHolder,
  thirdOf,
} from '../../platform/concurrency/fair-share.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { isPermanentDataError, isUniqueViolation } from '../../platform/database/database-errors.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Storage } from '../../platform/storage.ts';
import { readReportOutcomes } from '../delivery-reports/report-outcomes.ts';
import type { EventService } from '../events/event.service.ts';
import { announceReceived } from '../messages/announce-received.ts';
import { isHidden } from '../messages/hidden-labels.ts';
import type { SpamVerdict } from '../messages/message.entity.ts';
import { emptyInboundMail, type ParsedInboundMail, type ParserPool } from '../mime/parser/pool.ts';
import type { OutcomeService } from '../outbound/outcome.service.ts';
import { insertUnclaimed } from '../stored-objects/unclaimed-objects.ts';
import { recordUsage } from '../usage/count-usage.ts';
import { type AnalyzedMail, createReceivedMessage } from './create-received-message.ts';
import { discardReceipt, refundReceived } from './discard-receipt.ts';
import { computeFingerprint } from './fingerprint.ts';
import { type Authenticate, markUnclearAuthor, markUnreadAuthor } from './mail-authentication.ts';
import { MAX_BUFFERED_BYTES, openRawMail, type RawMail } from './raw-mail.ts';
import { type Receipt, ReceiptEntity, toMessageId } from './receipt.entity.ts';
import { deriveSpamVerdict, type ScanForSpam } from './spam-verdict.ts';

/** The result of a receipt that an earlier attempt has processed. */
export const ALREADY_PROCESSED = 'already processed';

export type IngestService = ReturnType<typeof createIngestService>;

export interface IngestServiceOptions {
  database: Database;
  storage: Pick<Storage, 'getStream' | 'putStream'>;
  outbox: Pick<Outbox, 'enqueue'>;
  outcomes: OutcomeService;
  events: EventService;
  /** `Action: relayed` counts as delivered, because the next hop sends no reports. */
  relayedIsDelivered: boolean;
  parserPool: Pick<ParserPool, 'parse'>;
  authenticate: Authenticate;
  scanForSpam: ScanForSpam;
  /** Called for the metrics when a message is stored without its content. */
  onParseFailure?: () => void;
  /** Less than the number of parser processes, so that small messages never wait for large ones. */
  maxConcurrentLargeMessages: number;
  /** Maximum number of concurrent transactions that store a message. DNS lookups and spam scans are not limited. */
  maxConcurrentStores: number;
}

export function createIngestService(input: IngestServiceOptions) {
  const { database } = input;
  const { maxConcurrentLargeMessages, maxConcurrentStores } = input;
  const options = {
    ...input,
    storeSlots: createFairShare({ name: 'messages stored', capacity: maxConcurrentStores }),
  };
  const largeMessageSlots = createFairShare({
    name: 'large messages parsed',
    capacity: maxConcurrentLargeMessages,
    reserve: thirdOf(maxConcurrentLargeMessages),
  });
  return {
    /**
     * Stores a received message in its thread and announces it, or applies a delivery report. A report that cannot be parsed
     * is stored as a message. Idempotent: the receipt records progress, and stored ids derive from its id.
     *
     * @returns a description of the result.
     * @throws NoShareError if too many large messages are being parsed.
     */
    async ingest(receiptId: string): Promise<string> {
      const receipt = await database.db
        .selectFrom('inbound_receipts')
        .select(columnsOf(ReceiptEntity))
        .where('id', '=', receiptId)
        .executeTakeFirst();
      if (!receipt) return 'gone';
      if (receipt.status === 'processed') return ALREADY_PROCESSED;
      if (receipt.status !== 'received') return `already ${receipt.status}`;
      if (receipt.kind === 'report' && (await ingestReport(options, receipt))) return 'report applied';
      if (receipt.sizeBytes <= MAX_BUFFERED_BYTES) return ingestMail(options, receipt);
      const holders = [organizationHolder(receipt.organizationId)];
      const release = await acquireBriefly(largeMessageSlots, { holders }, BUSY_RETRY_MS);
      return ingestMail(options, receipt).finally(release);
    },

    /** Ends the processing of a message that is lost; see {@link discardReceipt}. */
    discard: (receiptId: string, reason: string): Promise<string> =>
      discardReceipt(database, receiptId, reason),
  };
}

/** When a large message that found no slot tries again. */
const BUSY_RETRY_MS = 1_000;

type Ingest = IngestServiceOptions & { storeSlots: FairShare };

/** @returns false if the message is not a delivery report. */
async function ingestReport(options: IngestServiceOptions, receipt: Receipt): Promise<boolean> {
  const { database, storage, outcomes, relayedIsDelivered } = options;
  const reportedOutcomes = await readReportOutcomes(await storage.getStream(receipt.rawKey), {
    position: receipt.recipientPosition ?? 0,
    relayedIsDelivered,
  });
  if (!reportedOutcomes) return false;
  return database.systemTransaction(async (transaction) => {
    if (await markProcessed(transaction.db, receipt.id, {}))
      await outcomes.apply(transaction, receipt.messageId, reportedOutcomes);
    return true;
  });
}

async function ingestMail(options: Ingest, receipt: Receipt): Promise<string> {
  const raw = await openRawMail(options.storage, receipt);
  const fingerprint = await computeFingerprint(await raw.open());
  const { sha256 } = fingerprint;
  const analyzed = await analyze(options, receipt, { raw, ...fingerprint });
  if (analyzed.mail.parseError !== null) options.onParseFailure?.();
  try {
    return await store(options, receipt, { ...analyzed, sha256 });
  } catch (error) {
    // Every retry would fail, and the message would never be stored.
    if (!isPermanentDataError(error)) throw error;
    const mail = emptyInboundMail('The message contains a value that cannot be stored.');
    return store(options, receipt, { ...analyzed, mail, sha256 });
  }
}

/** Parses, authenticates and scans the message concurrently. */
async function analyze(
  { parserPool, storage, authenticate, scanForSpam }: IngestServiceOptions,
  receipt: Receipt,
  { raw, isSigned }: { raw: RawMail; isSigned: boolean },
): Promise<AnalyzedMail> {
  const messageId = toMessageId(receipt.id);
  const { clientIp, mailFrom, verdicts } = receipt;
  const [mail, authentication, scanned] = await Promise.all([
    parserPool.parse(await raw.open(), {
      organizationId: receipt.organizationId,
      async storeFile(index, content, contentType) {
        const key = `attachments/${messageId}/${index}`;
        return { key, stored: await storage.putStream(key, content, { contentType }) };
      },
    }),
    verdicts?.authentication ??
      authenticate({ raw, isSigned, clientIp, helo: receipt.helo ?? null, mailFrom }),
    verdicts?.isSpam ? SPAM_BY_PROVIDER : scanForSpam(raw, receipt),
  ]);
  const isUnread = mail.parseError !== null && Object.keys(mail.headers).length === 0;
  const verified = isUnread ? markUnreadAuthor(authentication) : markUnclearAuthor(authentication, mail);
  // Without an author, there is no domain whose policy could demand a refusal.
  const spam = scanned ?? deriveSpamVerdict(mail.from === null ? authentication : verified);
  return { mail, authentication: verified, spam };
}

const SPAM_BY_PROVIDER: SpamVerdict = { verdict: 'spam', score: null };

async function store(
  options: Ingest,
  receipt: Receipt,
  analyzed: AnalyzedMail & { sha256: Buffer },
): Promise<string> {
  const release = await options.storeSlots.acquire({
    holders: [organizationHolder(receipt.organizationId)],
  });
  return storeOnce(options, receipt, analyzed).finally(release);
}

async function storeOnce(
  { database, outbox, events }: Ingest,
  receipt: Receipt,
  { sha256, ...analyzed }: AnalyzedMail & { sha256: Buffer },
): Promise<string> {
  for (;;) {
    try {
      return await database.systemTransaction(async (transaction) => {
        const { db } = transaction;
        if (!(await markProcessed(db, receipt.id, { ...toMailReceipt(receipt), fingerprint: sha256 })))
          return ALREADY_PROCESSED;
        const message = await createReceivedMessage(transaction, outbox, receipt, analyzed);
        if (receipt.kind === 'report') await countReportAsReceived(db, receipt);
        if (isHidden(message.labels)) return `hidden as ${message.id}`;
        await announceReceived(transaction, events, message);
        return `stored as ${message.id}`;
      });
    } catch (error) {
      if (!isFingerprintConflict(error)) throw error;
      const outcome = await resolveDuplicate(database, receipt, { fingerprint: sha256, ...analyzed.mail });
      if (outcome !== undefined) return outcome;
    }
  }
}

/** Mail to a return path was accepted without being counted. Counts it now, without enforcing the limit. */
function countReportAsReceived(db: Db, { organizationId }: Receipt): Promise<void> {
  return recordUsage(db, {
    organizationId,
    counter: 'messages_received',
    amount: 1,
    at: new Date(),
  });
}

/** Converts the receipt of an unreadable report into the receipt of a message. */
function toMailReceipt({ id }: Receipt) {
  return { kind: 'mail' as const, message_id: toMessageId(id) };
}

/** Marks the receipt as processed. @returns false if another run already did. */
async function markProcessed(
  db: Db,
  receiptId: string,
  changes: Updateable<Tables['inbound_receipts']>,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('inbound_receipts')
    .set({ status: 'processed', processed_at: new Date(), ...changes })
    .where('id', '=', receiptId)
    .where('status', '=', 'received')
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Within this window, the same message is a duplicate. */
const DUPLICATE_WINDOW_MS = 7 * 24 * 3_600_000;

/** The unique index determines which of two concurrent duplicates is first. */
function isFingerprintConflict(error: unknown): boolean {
  return isUniqueViolation(error, 'inbound_receipts_fingerprint_unique');
}

/**
 * Completes the receipt of a duplicate.
 *
 * @returns undefined if the first message is too old or deleted. Its fingerprint is then cleared.
 */
function resolveDuplicate(
  database: Database,
  receipt: Receipt,
  { fingerprint, attachments }: { fingerprint: Buffer } & Pick<ParsedInboundMail, 'attachments'>,
): Promise<string | undefined> {
  return database.systemTransaction(async ({ db }) => {
    const first = await db
      .selectFrom('inbound_receipts')
      .select(['id', 'message_id as messageId', 'received_at as receivedAt'])
      .where('inbox_id', '=', receipt.inboxId)
      .where('fingerprint', '=', fingerprint)
      .forUpdate()
      .executeTakeFirst();
    if (!first) return undefined;
    const isRecent = receipt.receivedAt.getTime() - first.receivedAt.getTime() <= DUPLICATE_WINDOW_MS;
    if (!isRecent || !(await hasMessage(db, first.messageId))) {
      await db
        .updateTable('inbound_receipts')
        .set({ fingerprint: null })
        .where('id', '=', first.id)
        .execute();
      return undefined;
    }
    const isFirstRun = await markProcessed(db, receipt.id, { duplicate_of: first.messageId });
    if (!isFirstRun) return ALREADY_PROCESSED;
    if (receipt.kind === 'mail') await refundReceived(db, receipt);
    await releaseAttachments(db, receipt, attachments);
    return `duplicate of ${first.messageId}`;
  });
}

async function hasMessage(db: Db, id: string): Promise<boolean> {
  const message = await db.selectFrom('messages').select('id').where('id', '=', id).executeTakeFirst();
  return message !== undefined;
}

/** Registers the files of a duplicate for deletion by the sweep. */
async function releaseAttachments(
  db: Db,
  { organizationId }: Receipt,
  attachments: ParsedInboundMail['attachments'],
): Promise<void> {
  if (attachments.length === 0) return;
  const storageKeys = attachments.map(({ storageKey }) => storageKey);
  await insertUnclaimed(db, organizationId, { storageKeys });
}
