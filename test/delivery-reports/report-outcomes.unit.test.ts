import { Readable } from 'node:stream';
import { expect, test } from '@jest/globals';
import { readReportOutcomes } from '../../domain/delivery-reports/report-outcomes.ts';

/** A report with one block per action, as for an alias with several mailboxes. */
function report(...actions: string[]): Readable {
  const blocks = actions.map((action, n) => {
    const status = { failed: '5.1.1', delayed: '4.4.1' }[action] ?? '2.0.0';
    return `Original-Recipient: rfc822; team@people.example\r\nFinal-Recipient: rfc822; member${n}@people.example\r\nAction: ${action}\r\nStatus: ${status}\r\n`;
  });
  return Readable.from([
    Buffer.from(
      `Content-Type: multipart/report; boundary=b\r\n\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.people.example\r\n\r\n${blocks.join('\r\n')}\r\n--b--\r\n`,
    ),
  ]);
}

test.each([
  { actions: ['delivered'], kind: 'delivered' },
  { actions: ['expanded'], kind: 'delivered' },
  { actions: ['delayed'], kind: 'delayed' },
  { actions: ['failed'], kind: 'bounced' },
  { actions: ['delivered', 'failed'], kind: 'bounced' },
  { actions: ['delayed', 'delivered'], kind: 'delivered' },
  { actions: ['expanded', 'relayed', 'failed', 'delayed'], kind: 'bounced' },
])('a report with the actions $actions has the outcome $kind', async ({ actions, kind }) => {
  const outcomes = await readReportOutcomes(report(...actions), { position: 7, relayedIsDelivered: true });
  expect(outcomes).toEqual([expect.objectContaining({ position: 7, kind })]);
});

test.each([
  { relayedIsDelivered: true, kinds: ['delivered'] },
  { relayedIsDelivered: false, kinds: [] },
])('relayed counts as delivered: $relayedIsDelivered', async (given) => {
  const outcomes = await readReportOutcomes(report('relayed'), { position: 0, ...given });
  expect(outcomes?.map(({ kind }) => kind)).toEqual(given.kinds);
});
