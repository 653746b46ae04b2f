import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { deleteExpiredReceipts } from '../../domain/inbound/delete-receipts.ts';
import { overdueReceipts } from '../../domain/inbound/overdue-receipts.ts';
import { ReceiptEntity } from '../../domain/inbound/receipt.entity.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { query } from '../support/query.ts';
import { useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();

const receiptOf = (id: string) =>
  database.db
    .selectFrom('inbound_receipts')
    .select(columnsOf(ReceiptEntity))
    .where('id', '=', id)
    .executeTakeFirst();
/** The sum of what was counted as received; null if nothing was. */
async function receivedBy(organizationId: string): Promise<number | null> {
  const [row] = await query<{ total: number | null }>(
    database,
    sql`select sum(amount)::float8 as total from (
      select amount from usage_counters where org_id = ${organizationId} and counter = 'messages_received'
      union all
      select amount from usage_deltas where org_id = ${organizationId} and counter = 'messages_received') counted`,
  );
  return row?.total ?? null;
}
/** The reconciler's view; it takes the rows of other tests, too. */
async function isOverdue(id: string): Promise<boolean> {
  const runs = await overdueReceipts(database).take(10_000);
  return runs.some(({ start }) => start.workflowId === `inbound/${id}`);
}

test('a received message that is lost is discarded with its reason, and is final', async () => {
  const { inbox, ingest, accept, messageOf } = await arrangeInbox(database);
  const id = await accept(mail({ Subject: 'Lost' }), { receivedAt: new Date(Date.now() - 3_600_000) });
  expect(await isOverdue(id)).toBe(true);

  expect(await ingest.discard(id, 'bucket restored without it')).toBe(
    'discarded: bucket restored without it',
  );
  expect(await receiptOf(id)).toMatchObject({
    status: 'discarded',
    discardReason: 'bucket restored without it',
    processedAt: expect.any(Date),
  });
  expect(await receivedBy(inbox.organizationId)).toBe(-1);
  await database.db
    .updateTable('inbound_receipts')
    .set({ reconciled_at: null })
    .where('id', '=', id)
    .execute();
  expect(await isOverdue(id)).toBe(false);
  expect(await ingest.ingest(id)).toBe('already discarded');
  expect(await ingest.discard(id, 'again')).toBe('already discarded');
  expect(await receivedBy(inbox.organizationId)).toBe(-1);
  expect(await messageOf(id)).toBeUndefined();
});

test('a message that was stored meanwhile is not discarded', async () => {
  const { ingest, receive } = await arrangeInbox(database);
  const { receiptId } = await receive(mail({ Subject: 'Stored' }));
  expect(await ingest.discard(receiptId, 'too late')).toBe('already processed');
  expect(await receiptOf(receiptId)).toMatchObject({ status: 'processed', discardReason: null });
});

test('the row of a discarded message is deleted after 30 days', async () => {
  const { ingest, accept } = await arrangeInbox(database);
  const id = await accept(mail({ Subject: 'Old' }));
  await ingest.discard(id, 'lost');
  await deleteExpiredReceipts(database);
  expect(await receiptOf(id)).toBeDefined();
  await database.db
    .updateTable('inbound_receipts')
    .set({ processed_at: new Date(Date.now() - 31 * 86_400_000) })
    .where('id', '=', id)
    .execute();
  await deleteExpiredReceipts(database);
  expect(await receiptOf(id)).toBeUndefined();
});
