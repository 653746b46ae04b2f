import type { ReceiptService } from '../domain/inbound/receipt.service.ts';
import { createSemaphore } from '../platform/concurrency/semaphore.ts';

/**
 * The receipts of a listener, which uses at most `maxConcurrent` of the process's database connections: a burst of mail over
 * hundreds of SMTP connections must not make sends in the same process wait for one.
 */
export function limitReceipts(
  { resolve, commit, hasReceived }: ReceiptService,
  maxConcurrent: number,
): ReceiptService {
  const connections = createSemaphore(maxConcurrent);
  const limited =
    <Input extends unknown[], Output>(call: (...input: Input) => Promise<Output>) =>
    async (...input: Input): Promise<Output> => {
      const release = await connections.acquire();
      return call(...input).finally(release);
    };
  return { resolve: limited(resolve), commit: limited(commit), hasReceived: limited(hasReceived) };
}
