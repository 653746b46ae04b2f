import { idFromBytes, idToBytes } from '../../platform/ids.ts';

/** The message a receipt becomes shares its UUID, so that a repeated ingestion stores the same message. */
export function toMessageId(receiptId: string): string {
  return idFromBytes('message', idToBytes(receiptId));
}
