import { idFromBytes, idToBytes } from '../../platform/ids.ts';

/** A message has the UUID of its receipt, so that a retry stores the same message. */
export function toMessageId(receiptId: string): string {
  return idFromBytes('message', idToBytes(receiptId));
}
