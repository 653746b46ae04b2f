import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { deleteExpiredReceipts } from '../../domain/inbound/delete-receipts.ts';
import { ReceiptEntity } from '../../domain/inbound/receipt.entity.ts';
import { deleteExpiredReports, storeUnattributedReport } from '../../domain/inbound/unattributed-reports.ts';
import { sweepObjects } from '../../domain/stored-objects/sweep-objects.ts';
import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { newId } from '../../platform/ids.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { countRows, query } from '../support/query.ts';
import { useIsolatedDatabase } from '../support/resources.ts';

// Not the shared one: what this file deletes may belong to any organization.
const database = useIsolatedDatabase('expired_receipts');

const DAY_MS = 24 * 3_600_000;
const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS);

const receiptOf = (id: string) =>
  database.db
    .selectFrom('inbound_receipts')
    .select(columnsOf(ReceiptEntity))
    .where('id', '=', id)
    .executeTakeFirst();
const isDiscarded = (storageKey: string) =>
  database.systemTransaction(
    async ({ db }) =>
      (await countRows(
        db.selectFrom('unclaimed_objects').select('storage_key').where('storage_key', '=', storageKey),
      )) > 0,
  );
const age = (ids: string[]) =>
  database.db
    .updateTable('inbound_receipts')
    .set({ processed_at: daysAgo(31) })
    .where('id', '=', anyOf(ids))
    .execute();
/** This storage has no objects. */
const sweep = () => sweepObjects(database, { deleteMany: async () => undefined });

const report = (to: string) =>
  [
    'From: <MAILER-DAEMON@relay.example>',
    `To: <${to}>`,
    'Content-Type: multipart/report; report-type=delivery-status; boundary="part"',
    '',
    '--part',
    'Content-Type: message/delivery-status',
    '',
    'Reporting-MTA: dns; relay.example',
    '',
    'Final-Recipient: rfc822; bob@people.example',
    'Action: delivered',
    'Status: 2.0.0',
    '',
    '--part--',
    '',
  ].join('\r\n');

describe('expired receipts', () => {
  test('are deleted with their bytes after 30 days, except those of messages', async () => {
    const { inbox, receive } = await arrangeInbox(database);
    const folded = await receive(report(inbox.email), { kind: 'report', target: newId('message') });
    expect(folded.outcome).toBe('report applied');
    const original = mail({ Subject: 'Twice', 'Message-ID': '<twice@people.example>' });
    const first = await receive(original);
    const second = await receive(original);
    expect(second.outcome).toBe(`duplicate of ${first.message?.id}`);

    await deleteExpiredReceipts(database);
    expect(await receiptOf(folded.receiptId)).toBeDefined();

    await age([folded.receiptId, first.receiptId, second.receiptId]);
    expect(await deleteExpiredReceipts(database)).toBeGreaterThanOrEqual(2);
    expect(await receiptOf(folded.receiptId)).toBeUndefined();
    expect(await receiptOf(second.receiptId)).toBeUndefined();
    expect(await receiptOf(first.receiptId)).toBeDefined();
    expect(await isDiscarded(`raw/${folded.receiptId}`)).toBe(true);
    expect(await isDiscarded(`raw/${second.receiptId}`)).toBe(true);
    expect(await isDiscarded(`raw/${first.receiptId}`)).toBe(false);
  });

  test('an unreadable report keeps its receipt and bytes as long as its own message exists, regardless of its target', async () => {
    const { inbox, receive } = await arrangeInbox(database);
    const target = (await receive(mail({ Subject: 'Reported message' }))).message;
    const { receiptId, message } = await receive(mail({ Subject: 'I am on holiday', To: inbox.email }), {
      kind: 'report',
      target: target?.id ?? '',
    });
    expect(message).toMatchObject({ subject: 'I am on holiday' });
    await age([receiptId]);
    await deleteExpiredReceipts(database);
    expect(await receiptOf(receiptId)).toMatchObject({ kind: 'mail', messageId: message?.id });

    await database.db
      .deleteFrom('messages')
      .where('id', '=', message?.id as string)
      .execute();
    await sweep();
    expect(await isDiscarded(`raw/${receiptId}`)).toBe(false);
    expect(await receiptOf(receiptId)).toBeUndefined();
  });
});

describe('unattributed mail to the feedback address', () => {
  const storeReport = (facts: { sizeBytes?: number; receivedAt?: Date }) => {
    const rawKey = `raw/${newId('receipt')}`;
    return database.systemTransaction(async (transaction) => ({
      rawKey,
      kept: await storeUnattributedReport(transaction.db, {
        rawKey,
        sizeBytes: 100,
        sha256: Buffer.alloc(32),
        mailFrom: 'fbl@provider.example',
        clientIp: '192.0.2.1',
        helo: null,
        tls: false,
        receivedAt: new Date(),
        recipients: [],
        ...facts,
      }),
    }));
  };
  const isKept = (rawKey: string) =>
    database.systemTransaction(
      async ({ db }) =>
        (await countRows(db.selectFrom('unattributed_reports').select('id').where('raw_key', '=', rawKey))) >
        0,
    );
  const fill = (count: number, at: Date) =>
    query(
      database,
      sql`insert into unattributed_reports (id, raw_key, size_bytes, mail_from, client_ip, received_at)
         select ${newId('receipt')} || n, ${`raw/${newId('receipt')}/`} || n, 100, '', '192.0.2.1', ${at}::timestamptz from generate_series(1, ${count}) n`,
    );

  test('is stored if small', async () => {
    const small = await storeReport({});
    expect(small.kept).toBe(true);
    expect(await isKept(small.rawKey)).toBe(true);
    const large = await storeReport({ sizeBytes: 1024 * 1024 + 1 });
    expect(large.kept).toBe(false);
    expect(await isKept(large.rawKey)).toBe(false);
  });

  test('is stored at most 500 times per hour', async () => {
    // Uses a future hour, which no other test uses.
    const receivedAt = new Date(Date.now() + 2 * 3_600_000);
    await fill(500, receivedAt);
    expect((await storeReport({ receivedAt })).kept).toBe(false);
    await database.db.deleteFrom('unattributed_reports').where('received_at', '=', receivedAt).execute();
  });

  test('is deleted with its bytes after 30 days', async () => {
    const expired = await storeReport({ receivedAt: daysAgo(31) });
    const recent = await storeReport({ receivedAt: daysAgo(29) });
    await deleteExpiredReports(database);
    expect(await isKept(expired.rawKey)).toBe(false);
    expect(await isDiscarded(expired.rawKey)).toBe(true);
    expect(await isKept(recent.rawKey)).toBe(true);
  });

  test('is deleted with its bytes beyond the newest 1,000', async () => {
    const superseded = await storeReport({ receivedAt: daysAgo(20) });
    await fill(1_000, daysAgo(19));
    await deleteExpiredReports(database);
    expect(await isKept(superseded.rawKey)).toBe(false);
    expect(await isDiscarded(superseded.rawKey)).toBe(true);
    const newest = await storeReport({});
    expect(await isKept(newest.rawKey)).toBe(true);
  });
});
