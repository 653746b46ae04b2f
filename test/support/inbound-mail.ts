import { resolve } from 'node:path';
import { createIngestService, type IngestServiceOptions } from '../../domain/inbound/ingest.service.ts';
import { skipAuthentication } from '../../domain/inbound/mail-authentication.ts';
import { toMessageId } from '../../domain/inbound/receipt.entity.ts';
import { skipSpamScan } from '../../domain/inbound/spam-verdict.ts';
import type { Inbox } from '../../domain/inboxes/inbox.entity.ts';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { createParserPool, type ParserPool } from '../../domain/mime/parser/pool.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import { accepted, createMailServices, createMemoryStorage, ScriptedTransport } from './mail-services.ts';
import { createInbox, createOrganization } from './organizations.ts';
import { recordingOutbox } from './test-app.ts';

export interface ReceiptFacts {
  kind?: 'mail' | 'report';
  mailFrom?: string;
  /** Default: the address of the inbox. */
  rcptTo?: string;
  clientIp?: string;
  helo?: string;
  receivedAt?: Date;
  /** For a report: the id of the message it is about. */
  target?: string;
}

/** Lets a new inbox, or the given one, receive mail with a real database and storage in memory. */
export async function arrangeInbox(
  database: Database,
  overrides: Partial<IngestServiceOptions> = {},
  given?: Inbox,
) {
  const inbox = given ?? (await createInbox(database, await createOrganization(database)));
  const { outbox, commands } = recordingOutbox();
  const { outcomes } = createMailServices(database, new ScriptedTransport(async () => accepted), { outbox });
  const objects = new Map<string, Buffer>();
  const ingest = createIngestService({
    database,
    storage: createMemoryStorage(objects),
    outbox,
    outcomes,
    events: createWebhookEvents({ outbox }),
    relayedIsDelivered: true,
    parserPool: sharedParserPool(),
    authenticate: skipAuthentication,
    scanForSpam: skipSpamScan,
    maxConcurrentLargeMessages: 1,
    maxConcurrentStores: 10,
    ...overrides,
  });
  /** Commits a receipt like the listener, without ingesting it. */
  const accept = (raw: string | Buffer, facts: ReceiptFacts = {}) =>
    commitReceipt(database, { objects, inbox, raw: Buffer.from(raw), facts });
  const messageOf = (receiptId: string) => findMessage(database, toMessageId(receiptId));
  const receive = async (raw: string | Buffer, facts: ReceiptFacts = {}) => {
    const receiptId = await accept(raw, facts);
    const outcome = await ingest.ingest(receiptId);
    return { receiptId, outcome, message: await messageOf(receiptId) };
  };
  return { inbox, objects, ingest, accept, receive, messageOf, commands };
}

async function commitReceipt(
  database: Database,
  {
    objects,
    inbox,
    raw,
    facts,
  }: { objects: Map<string, Buffer>; inbox: Inbox; raw: Buffer; facts: ReceiptFacts },
): Promise<string> {
  const { kind = 'mail', mailFrom = 'ada@people.example', clientIp = '192.0.2.1', target } = facts;
  const id = newId('receipt');
  objects.set(`raw/${id}`, raw);
  await database.systemTransaction(async ({ db }) => {
    await db
      .insertInto('inbound_receipts')
      .values({
        id,
        org_id: inbox.organizationId,
        env_id: inbox.environmentId,
        inbox_id: inbox.id,
        kind,
        message_id: target ?? toMessageId(id),
        recipient_position: kind === 'report' ? 0 : null,
        raw_key: `raw/${id}`,
        size_bytes: raw.length,
        sha256: Buffer.alloc(32),
        mail_from: mailFrom,
        rcpt_to: facts.rcptTo ?? inbox.email,
        client_ip: clientIp,
        helo: facts.helo ?? null,
        received_at: facts.receivedAt ?? new Date(),
      })
      .execute();
  });
  return id;
}

let reader: ParserPool | undefined;

/** Real parser processes, shared by the tests of a file. */
export function sharedParserPool(): ParserPool {
  reader ??= createParserPool({
    entry: resolve(import.meta.dirname, '../../workers/mail-parser.ts'),
    processes: 2,
  });
  return reader;
}

function findMessage(database: Database, id: string) {
  return database.db
    .selectFrom('messages')
    .select(
      columnsOf(MessageEntity, { lazy: ['textBody', 'htmlBody', 'extractedText', 'hiddenText', 'headers'] }),
    )
    .where('id', '=', id)
    .executeTakeFirst();
}

/** A raw message from Ada to an agent, with additional or replaced header fields. */
export function mail(fields: Record<string, string>, body = 'Hello'): string {
  const all = { From: 'Ada <ada@people.example>', To: 'agent@mail.test', ...fields };
  return [...Object.entries(all).map(([name, value]) => `${name}: ${value}`), '', body].join('\r\n');
}
