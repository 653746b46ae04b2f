import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from '@jest/globals';
import { SuppressionEntity } from '../../domain/deliverability/suppression.entity.ts';
import { createIngestService } from '../../domain/inbound/ingest.service.ts';
import { skipAuthentication } from '../../domain/inbound/mail-authentication.ts';
import { toMessageId } from '../../domain/inbound/receipt.entity.ts';
import { skipSpamScan } from '../../domain/inbound/spam-verdict.ts';
import { UnattributedReportEntity } from '../../domain/inbound/unattributed-report.entity.ts';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { createMemoryStorage, createTestReceiptService } from '../support/mail-services.ts';
import { arrangeSending, dispatchOnce, readMessageState } from '../support/outbound-mail.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';

const FEEDBACK = 'complaints@bounces.mail.test';

const database = useWorkerDatabase();

/** Sends a message to three people and returns the bytes of each copy, and a function that delivers a report. */
async function arrange() {
  const world = await arrangeSending(database);
  const id = await world.send('ada@people.example', 'bob@people.example', 'eve@people.example');
  await dispatchOnce(world, id);
  const copies = await Promise.all(
    world.transport.transmissions.map(async ({ openRaw, sender, sizeBytes }) => {
      const raw = await buffer(await openRaw());
      expect(raw.length).toBe(sizeBytes);
      return { sender, header: raw.toString().split('\r\n\r\n')[0] ?? '' };
    }),
  );
  const { outbox, commands } = recordingOutbox();
  const objects = new Map<string, Buffer>();
  const storage = createMemoryStorage(objects);
  const receipts = createTestReceiptService({ database, outbox, storage });
  const ingest = createIngestService({
    database,
    storage,
    outbox,
    outcomes: world.outcomes,
    events: createWebhookEvents({ outbox }),
    relayedIsDelivered: true,
    maxConcurrentLargeMessages: 1,
    maxConcurrentStores: 10,
    authenticate: skipAuthentication,
    scanForSpam: skipSpamScan,
    parserPool: { parse: () => Promise.reject(new Error('is no mail')) },
  });
  /** @returns the outcome of each receipt. */
  const deliver = async (raw: string, to = FEEDBACK) => {
    const route = await receipts.resolve(to, 'fbl@provider.example');
    if (typeof route === 'string' || route.kind === 'full') throw new Error('The address was refused');
    const rawKey = `raw/${id}/${objects.size}`;
    const { sizeBytes, sha256 } = await storage.putStream(rawKey, Readable.from([Buffer.from(raw)]), {
      contentType: 'message/rfc822',
    });
    await receipts.commit({
      rawKey,
      sizeBytes,
      sha256,
      mailFrom: 'fbl@provider.example',
      clientIp: '192.0.2.1',
      helo: null,
      tls: false,
      receivedAt: new Date(),
      recipients: [{ address: to, route }],
    });
    const runs = commands.splice(0).flatMap(({ start }) => (start ? [start.input] : []));
    const ids = runs.flatMap((input) => (input && 'receiptId' in input ? [String(input.receiptId)] : []));
    const results = await Promise.all(ids.map((receiptId) => ingest.ingest(receiptId)));
    return { results, rawKey, stored: await findUnattributed(rawKey), ids: ids.map(toMessageId) };
  };
  return { world, id, copies, deliver };
}

const findUnattributed = (rawKey: string) =>
  database.db
    .selectFrom('unattributed_reports')
    .select(columnsOf(UnattributedReportEntity))
    .where('raw_key', '=', rawKey)
    .executeTakeFirst();
const suppressed = (organizationId: string) =>
  database.systemTransaction(async ({ db }) =>
    (
      await db
        .selectFrom('suppressions')
        .select(columnsOf(SuppressionEntity))
        .where('org_id', '=', organizationId)
        .execute()
    ).map(({ email, origin }) => `${email} ${origin}`),
  );

/** An RFC 5965 report from a provider that redacts the recipient. */
function arf(reportedHeader: string, fields: string[] = []): string {
  return [
    'From: <fbl@provider.example>',
    `To: <${FEEDBACK}>`,
    'Subject: FW: Subject',
    'MIME-Version: 1.0',
    'Content-Type: multipart/report; report-type=feedback-report; boundary="part"',
    '',
    '--part',
    'Content-Type: text/plain; charset="US-ASCII"',
    '',
    'This is an abuse report.',
    '--part',
    'Content-Type: message/feedback-report',
    '',
    'Feedback-Type: abuse',
    'User-Agent: SomeGenerator/1.0',
    'Version: 1',
    ...fields,
    '',
    '--part',
    'Content-Type: message/rfc822',
    '',
    reportedHeader,
    '',
    'Text',
    '--part--',
    '',
  ].join('\r\n');
}

const withoutToken = (header: string) => header.replace(/^X-Report-Token:.*\r\n/im, '');

describe('complaints', () => {
  test('are attributed by the token in the reported header and recorded as an event with the specified data', async () => {
    const { world, id, copies, deliver } = await arrange();
    await expect(deliver(arf(copies[1]?.header ?? ''))).resolves.toMatchObject({
      results: ['report applied'],
      stored: undefined,
    });
    const state = await readMessageState(database, id);
    expect(state).toMatchObject({ status: 'complained', recipients: ['sent', 'complained', 'sent'] });
    expect(state.types).toEqual(['message.sent', 'message.complained']);
    expect(state.events[1]?.data).toEqual({
      message_id: id,
      inbox_id: world.inbox.id,
      complained_recipients: ['bob@people.example'],
      feedback_type: 'abuse',
      complained_at: expect.any(String),
    });
    expect(await suppressed(world.inbox.organizationId)).toEqual(['bob@people.example complaint']);
    // Providers may send the same report again.
    await deliver(arf(copies[1]?.header ?? ''));
    expect((await readMessageState(database, id)).types).toHaveLength(2);
  });

  test.each(['Original-Mail-From: <%>', 'Return-Path: <%>'])(
    'are attributed by the envelope sender in %s',
    async (field) => {
      const { id, copies, deliver } = await arrange();
      const line = field.replace('%', (copies[2]?.sender ?? '').toUpperCase());
      const header = withoutToken(copies[2]?.header ?? '');
      await deliver(field.startsWith('Return') ? arf(`${line}\r\n${header}`) : arf(header, [line]));
      expect((await readMessageState(database, id)).recipients).toEqual(['sent', 'sent', 'complained']);
    },
  );

  test('sent to a return path are attributed to its recipient, regardless of the token they contain', async () => {
    const { id, copies, deliver } = await arrange();
    await deliver(arf(copies[1]?.header ?? ''), copies[0]?.sender);
    expect((await readMessageState(database, id)).recipients).toEqual(['complained', 'sent', 'sent']);
  });

  test.each(['not-spam', 'auth-failure'])('ignore the feedback type %s', async (feedbackType) => {
    const { world, id, copies, deliver } = await arrange();
    const report = arf(copies[0]?.header ?? '').replace('Type: abuse', `Type: ${feedbackType}`);
    await expect(deliver(report)).resolves.toMatchObject({ results: ['report applied'] });
    expect((await readMessageState(database, id)).recipients).toEqual(['sent', 'sent', 'sent']);
    expect(await suppressed(world.inbox.organizationId)).toEqual([]);
  });

  const forge = (header: string) =>
    header.replace(/(bounces\+)(.)/i, (_all, before, first) => `${before}${first === 'a' ? 'b' : 'a'}`);
  const cases: [string, (copy: { header: string }) => string][] = [
    ['a report with only our Message-ID and no token', ({ header }) => arf(withoutToken(header))],
    ['a report with a forged token', ({ header }) => arf(forge(header))],
    ['a message that is not a report', ({ header }) => `Subject: stop this\r\n\r\n${header}`],
    ['a truncated report', ({ header }) => arf(header).slice(0, 200)],
    ['an empty message', () => ''],
  ];
  test.each(cases)('store %s for operators without changing any state', async (_name, write) => {
    const { world, id, copies, deliver } = await arrange();
    const { results, stored } = await deliver(write(copies[0] ?? { header: '' }));
    expect(results).toEqual([]);
    expect(stored).toMatchObject({ mailFrom: 'fbl@provider.example', clientIp: '192.0.2.1' });
    expect((await readMessageState(database, id)).recipients).toEqual(['sent', 'sent', 'sent']);
    expect(await suppressed(world.inbox.organizationId)).toEqual([]);
  });

  test('the stored message is the same for every recipient and contains no token', async () => {
    const { world, id, copies } = await arrange();
    expect(new Set(copies.map(({ header }) => header)).size).toBe(3);
    expect(new Set(copies.map(({ header }) => withoutToken(header))).size).toBe(1);
    const message = await database.db
      .selectFrom('messages')
      .select(columnsOf(MessageEntity))
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    expect(world.objects.get(message.rawKey ?? '')?.toString()).not.toContain('X-Report-Token');
  });
});
