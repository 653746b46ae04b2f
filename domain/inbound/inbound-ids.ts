import { idFromBytes, idToBytes } from '../../platform/ids.ts';

/** A message has the same UUID as its receipt, so a retry stores the same message. */
export function toMessageId(receiptId: string): string {
  return idFromBytes('message', idToBytes(receiptId));
}
