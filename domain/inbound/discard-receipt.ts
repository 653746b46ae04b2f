import type { Database, Transaction } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import { timeOfId } from '../../platform/ids.ts';
import { recordUsage } from '../usage/count-usage.ts';
import { type Receipt, ReceiptEntity } from './receipt.entity.ts';

const MAX_REASON_CHARACTERS = 500;

/**
 * Ends the processing of a received message that cannot be stored, by an operator's decision. The row keeps the reason; it
 * and the raw message, if it exists, are deleted after 30 days. The message is not counted as received.
 *
 * @returns a description of the result.
 */
export async function discardReceipt(database: Database, receiptId: string, reason: string): Promise<string> {
  return database.systemTransaction(async (transaction) => {
    const { em } = transaction;
    const receipt = await em.findOne(ReceiptEntity, { id: receiptId });
    if (!receipt) return 'gone';
    const discardReason = storableText(reason, MAX_REASON_CHARACTERS);
    const changed = await em.nativeUpdate(
      ReceiptEntity,
      { id: receiptId, status: 'received' },
      { status: 'discarded', discardReason, processedAt: new Date() },
    );
    if (changed === 0) return receipt.status === 'discarded' ? 'already discarded' : 'already processed';
    if (receipt.kind === 'mail') await refundReceived(transaction, receipt);
    return `discarded: ${discardReason}`;
  });
}

/** Refunds the unit in the month in which it was counted. */
export function refundReceived({ em }: Transaction, { id, organizationId }: Receipt): Promise<void> {
  return recordUsage(em, { organizationId, counter: 'messages_received', amount: -1, at: timeOfId(id) });
}
