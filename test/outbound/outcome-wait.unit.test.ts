import { expect, test } from '@jest/globals';
import type { Scope } from '../../domain/identity/scope.ts';
import type { MessageDetails } from '../../domain/messages/message-details.ts';
import { createOutcomeWaitService } from '../../domain/outbound/outcome-wait.service.ts';

const details = (status: string, recipients: string[], tracked = true) =>
  ({
    message: { status, tracked, inboxId: 'inb_1' },
    recipients: recipients.map((one) => ({ status: one })),
  }) as unknown as MessageDetails;

/** @returns the status of the message that a wait returned after it read these, one at a time. */
async function waitFor(...reads: MessageDetails[]): Promise<string | undefined> {
  const [first] = reads;
  const waits = createOutcomeWaitService({
    // The first one only has the inbox.
    messages: { get: async () => reads.shift() ?? details('gone', []) },
    eventStreams: { follow: async () => ({ next: async () => [], close: () => undefined }) as never },
  });
  if (first) reads.unshift(first);
  const wait = await waits.begin({} as Scope, 'msg_1');
  return (await wait.next(1_000))?.message.status;
}

test('a message is returned with its outcome, and not as it was before its recipients were read', async () => {
  expect(await waitFor(details('sent', ['delivered']), details('delivered', ['delivered']))).toBe(
    'delivered',
  );
  expect(await waitFor(details('sending', ['sent'], false), details('sent', ['sent'], false))).toBe('sent');
  expect(await waitFor(details('queued', ['bounced']), details('bounced', ['bounced']))).toBe('bounced');
});

test.each([
  [details('sent', ['sent'], false), 'sent'],
  [details('delivered', ['delivered', 'rejected']), 'delivered'],
  [details('received', []), 'received'],
  [details('canceled', ['pending']), 'canceled'],
  [details('rejected', ['rejected']), 'rejected'],
])('a settled message is returned at once', async (settled, status) => {
  expect(await waitFor(settled)).toBe(status);
});

test('sent is no outcome while a report is awaited', async () => {
  expect(
    await waitFor(details('sent', ['sent']), details('sent', ['sent']), details('delivered', ['delivered'])),
  ).toBe('delivered');
});
