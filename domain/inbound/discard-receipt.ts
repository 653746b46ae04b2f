import type { Database } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Db } from '../../platform/database/tables.ts';
import { timeOfId } from '../../platform/ids.ts';
import { recordUsage } from '../usage/count-usage.ts';
import type { Receipt } from './receipt.entity.ts';

const MAX_REASON_CHARACTERS = 500;

/**
 * Ends the processing of a received message that cannot be stored, by an operator's decision. The row keeps the reason; it
 * and the raw message, if it exists, are deleted after 30 days. The message is not counted as received.
 *
 * @returns a description of the result.
 */
export async function discardReceipt(database: Database, receiptId: string, reason: string): Promise<string> {
  return database.systemTransaction(async ({ db }) => {
    const receipt = await db
      .selectFrom('inbound_receipts')
      .select(['id', 'org_id as organizationId', 'kind', 'status'])
      .where('id', '=', receiptId)
      .executeTakeFirst();
    if (!receipt) return 'gone';
    const discardReason = storableText(reason, MAX_REASON_CHARACTERS);
    const { numUpdatedRows } = await db
      .updateTable('inbound_receipts')
      .set({ status: 'discarded', discard_reason: discardReason, processed_at: new Date() })
      .where('id', '=', receiptId)
      .where('status', '=', 'received')
      .executeTakeFirst();
    if (numUpdatedRows === 0n)
      return receipt.status === 'discarded' ? 'already discarded' : 'already processed';
    if (receipt.kind === 'mail') await refundReceived(db, receipt);
    return `discarded: ${discardReason}`;
  });
}

/** Refunds the unit in the month in which it was counted. */
export function refundReceived(
  db: Db,
  { id, organizationId }: Pick<Receipt, 'id' | 'organizationId'>,
): Promise<void> {
  return recordUsage(db, {
    organizationId,
    counter: 'messages_received',
    amount: -1,
    at: timeOfId(id),
  });
}
