import type { ReceiptService } from '../domain/inbound/receipt.service.ts';
import { createFairShare, type Holder } from '../platform/concurrency/fair-share.ts';

/**
 * The receipts of a listener, which uses at most `maxConcurrent` of the process's database connections: a burst of mail over
 * hundreds of SMTP connections must not make sends in the same process wait for one. Recipients take turns.
 */
export function limitReceipts(
  { resolve, checkSender, commit, hasReceived }: ReceiptService,
  maxConcurrent: number,
): ReceiptService {
  const connections = createFairShare({ name: 'connections of receipts', capacity: maxConcurrent });
  async function inTurn<T>(recipient: string | undefined, work: () => Promise<T>): Promise<T> {
    const holder: Holder = { kind: 'address', id: recipient ?? '' };
    const release = await connections.acquire({ holders: [holder] });
    return work().finally(release);
  }
  return {
    resolve: (...input) => inTurn(input[0], () => resolve(...input)),
    // It needs no connection.
    checkSender,
    commit: (...input) => inTurn(input[0].recipients[0]?.address, () => commit(...input)),
    hasReceived: (...input) => inTurn(input[1][0]?.address, () => hasReceived(...input)),
  };
}
