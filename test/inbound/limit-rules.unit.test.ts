import { describe, expect, test } from '@jest/globals';
import { networkOf } from '../../platform/network.ts';
import {
  exceedsConnectionLimit,
  largeMessageHolders,
  tooManyConnections,
} from '../../workers/inbound-limits.ts';

test.each([
  { address: '192.0.2.1', others: ['192.0.2.1'], exceeded: true },
  { address: '192.0.2.1', others: ['192.0.2.2', '::1'], exceeded: false },
  { address: '192.0.2.1', others: ['::ffff:192.0.2.1'], exceeded: true },
  { address: '2001:db8:0:1::1', others: ['2001:db8:0:1:ffff::2'], exceeded: true },
  { address: '2001:db8:0:1::1', others: ['2001:db8:0:2::1'], exceeded: false },
  { address: 'unknown', others: ['192.0.2.1'], exceeded: false },
])('$address in addition to $others exceeds a limit of one: $exceeded', ({ address, others, exceeded }) => {
  const connections = [address, ...others].map((remoteAddress) => ({ remoteAddress }));
  expect(exceedsConnectionLimit(connections, address, 1)).toBe(exceeded);
});

test('a limit of connections includes the new one', () => {
  const connections = [{ remoteAddress: '192.0.2.1' }];
  expect(exceedsConnectionLimit(connections, '192.0.2.1', 1)).toBe(false);
  expect(exceedsConnectionLimit(connections, '192.0.2.1', 0)).toBe(true);
});

test('a client with too many connections is told to come back', () => {
  expect(tooManyConnections()).toMatchObject({
    responseCode: 421,
    message: expect.stringMatching(/^4\.7\.0 /),
    reason: 'too_busy',
  });
});

describe('a large message counts', () => {
  const route = (organizationId: string, inboxId: string) => ({ organizationId, inboxId });

  test('once for its network, and for each inbox and organization that gets it', () => {
    expect(
      largeMessageHolders('2001:db8:0:1::7', [
        route('org_1', 'inb_1'),
        route('org_1', 'inb_2'),
        route('org_2', 'inb_3'),
        route('org_1', 'inb_1'),
      ]),
    ).toEqual([
      { kind: 'network', id: networkOf('2001:db8:0:1::') },
      { kind: 'inbox', id: 'inb_1' },
      { kind: 'inbox', id: 'inb_2' },
      { kind: 'inbox', id: 'inb_3' },
      { kind: 'organization', id: 'org_1' },
      { kind: 'organization', id: 'org_2' },
    ]);
  });

  test('for its network alone, where it is a report to the service', () => {
    expect(largeMessageHolders('192.0.2.1', [{ kind: 'feedback' }])).toEqual([
      { kind: 'network', id: '192.0.2.1' },
    ]);
  });
});
