import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createAddressPolicy } from '../../platform/egress/address-policy.ts';

const policy = createAddressPolicy([]);

describe('address policy', () => {
  test.each([
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['0.0.0.0', 'unspecified'],
    ['10.1.2.3', 'private'],
    ['172.16.0.1', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.1.1', 'private'],
    ['169.254.169.254', 'linkLocal'],
    ['100.64.0.1', 'carrierGradeNat'],
    ['100.100.100.200', 'carrierGradeNat'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'broadcast'],
    ['192.0.2.1', 'reserved'],
    ['198.51.100.7', 'reserved'],
    ['203.0.113.9', 'reserved'],
    ['198.18.0.1', 'reserved'],
    ['192.0.0.192', 'reserved'],
    ['240.0.0.1', 'reserved'],
    ['168.63.129.16', 'metadata'],
    ['::1', 'loopback'],
    ['::', 'unspecified'],
    ['fe80::1', 'linkLocal'],
    ['fe80::1%eth0', 'linkLocal'],
    ['fd00:ec2::254', 'uniqueLocal'],
    ['fec0::1', 'deprecatedSiteLocal'],
    ['ff02::1', 'multicast'],
    ['2001:db8::1', 'reserved'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['::ffff:7f00:1', 'loopback'],
    ['::127.0.0.1', 'loopback'],
    ['::7f00:1', 'reserved'],
    ['64:ff9b::10.0.0.1', 'private'],
    ['64:ff9b:1::10.0.0.1', 'rfc6052'],
    ['2002:7f00:1::', 'loopback'],
    ['2002:a9fe:a9fe::1', 'linkLocal'],
    ['2001:0:1:2:3:4:5:6', 'teredo'],
    ['4000::1', 'reserved'],
  ])('rejects %s', (address, kind) => {
    expect(policy.findRefusal(address)).toMatch(new RegExp(`\\(${kind}\\)$`));
  });

  test.each([
    '1.1.1.1',
    '8.8.8.8',
    '172.32.0.1',
    '2606:4700:4700::1111',
    '64:ff9b::8.8.8.8',
    '2002:808:808::1',
  ])('allows %s', (address) => {
    expect(policy.findRefusal(address)).toBeNull();
  });

  test.each(['', 'localhost', '1.2.3', '1.2.3.4.5', '0x7f000001', '127.1', ':::'])(
    'rejects %j, which is not an address',
    (text) => {
      expect(policy.findRefusal(text)).toMatch(/is not an IP address$/);
    },
  );

  test('treats every IPv6 form of an IPv4 address like the address itself', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number);
        const hex = (high: number, low: number) => (high * 256 + low).toString(16);
        const verdict = policy.findRefusal(address);
        expect(policy.findRefusal(`::ffff:${address}`)).toBe(verdict);
        expect(policy.findRefusal(`64:ff9b::${address}`)).toBe(verdict);
        expect(policy.findRefusal(`2002:${hex(a, b)}:${hex(c, d)}::1`)).toBe(verdict);
      }),
    );
  });

  test('reads addresses as sockets and URLs write them', () => {
    expect(policy.findRefusal('[::1]')).toBe('::1 is not a public address (loopback)');
    expect(policy.findRefusal('::1%lo')).toBe('::1 is not a public address (loopback)');
    expect(policy.findRefusal('[2606:4700:4700::1111]')).toBeNull();
    expect(policy.findRefusal('x[::1]')).toBe('x[::1] is not an IP address');
    expect(policy.findRefusal('x'.repeat(200))).toBe(`${'x'.repeat(100)} is not an IP address`);
  });

  test('allows the configured ranges and nothing else', () => {
    const open = createAddressPolicy(['127.0.0.0/8', 'fd00::/8']);
    expect(open.findRefusal('127.8.8.8')).toBeNull();
    expect(open.findRefusal('::ffff:127.0.0.1')).toBeNull();
    expect(open.findRefusal('fd12::1')).toBeNull();
    expect(open.findRefusal('10.0.0.1')).not.toBeNull();
    expect(open.findRefusal('::1')).not.toBeNull();
    expect(() => createAddressPolicy(['not a range'])).toThrow('not a range is not a CIDR range');
  });
});
