import { expect, test } from '@jest/globals';
import type { ReceiptService } from '../../domain/inbound/receipt.service.ts';
import { limitReceipts } from '../../workers/limited-receipts.ts';

test('limits concurrent calls', async () => {
  let open = 0;
  let most = 0;
  const work = async () => {
    open += 1;
    most = Math.max(most, open);
    await new Promise(setImmediate);
    open -= 1;
    return 'unknown' as const;
  };
  const receipts: ReceiptService = {
    resolve: work,
    checkSender: async () => 'authenticated',
    commit: () => work().then(() => 1),
    hasReceived: () => work().then(() => false),
  };
  const limited = limitReceipts(receipts, 2);
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => limited.resolve(`person-${index}@agents.example`, '')),
  );
  expect(new Set(answers)).toEqual(new Set(['unknown']));
  expect(most).toBe(2);
});

test('frees the connection of a call that fails', async () => {
  const failing = async () => {
    throw new Error('the database is down');
  };
  const limited = limitReceipts(
    { resolve: failing, checkSender: failing, commit: failing, hasReceived: failing },
    1,
  );
  for (let attempt = 0; attempt < 3; attempt += 1)
    await expect(limited.resolve('a@agents.example', '')).rejects.toThrow('the database is down');
});
