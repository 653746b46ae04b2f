import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import { isPublicAddress } from '../../domain/inbound/mail-authentication.ts';
import { loadConfig } from '../../platform/config.ts';
import { createAddressPolicy } from '../../platform/egress/address-policy.ts';
import { isCidr, networkOf, parseAddress, splitCidr } from '../../platform/network.ts';
import { listSourceFiles } from '../guards/import-graph.ts';

const RANGES = [
  '203.0.113.0/24',
  '203.0.113.7',
  '0.0.0.0/0',
  '2001:db8::/32',
  '::/0',
  '::ffff:192.0.2.1/128',
];
const NO_RANGES = [
  '203.0.113.0/024',
  '203.0.113.0/00',
  '203.0.113.0/ 24',
  '203.0.113.0/+24',
  '203.0.113.0/2e1',
  '203.0.113.0/24/8',
  '203.0.113.0/33',
  '203.0.113.0/255.255.255.0',
  '203.0.113/24',
  '0313.0.113.0/24',
  '0xcb.0.113.0/24',
  '3405803776/24',
  '203.0.113.0/',
  '/24',
  '2001:db8::/032',
  '2001:db8::/129',
  'fe80::1%eth0/64',
  '[2001:db8::]/32',
];

describe('a range', () => {
  test.each(RANGES)('is %s', (text) => expect(isCidr(text)).toBe(true));
  test.each(NO_RANGES)('is not %s', (text) => expect(isCidr(text)).toBe(false));
});

describe('settings with ranges', () => {
  const start = (settings: Record<string, string>) => () =>
    loadConfig({
      DATABASE_URL: 'postgresql://localhost/test',
      ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
      SIGNING_KEY: Buffer.alloc(32, 7).toString('base64'),
      RETURN_PATH_KEY: Buffer.alloc(32, 7).toString('base64'),
      MAIL_DOMAIN: 'mail.test',
      ...settings,
    });

  test('are read', () => {
    expect(
      start({ TRUST_PROXY: 'loopback, 10.0.0.0/8, 2001:db8::1', EGRESS_ALLOW: '10.0.0.0/8,' }),
    ).not.toThrow();
  });

  test.each(NO_RANGES)('do not contain %s', (text) => {
    expect(start({ TRUST_PROXY: `10.0.0.0/8, ${text}` })).toThrow(/TRUST_PROXY/);
    expect(start({ EGRESS_ALLOW: `10.0.0.0/8, ${text}` })).toThrow(/EGRESS_ALLOW/);
    expect(() => createAddressPolicy([text])).toThrow(/CIDR/);
  });
});

describe('an address', () => {
  test.each(['010.0.0.1', '127.1', '0x7f000001', '2130706433', '8.8.8.8 ', ''])('is not %j', (text) => {
    expect(parseAddress(text)).toBeNull();
    expect(isPublicAddress(text)).toBe(false);
    expect(networkOf(text)).toBe(text);
  });
});

describe('the network of a client', () => {
  test.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:0:1::1', '2001:db8:0:1:ffff:ffff:ffff:ffff'],
  ])('of %s is that of %s', (one, other) => expect(networkOf(one)).toBe(networkOf(other)));

  test.each([
    ['192.0.2.1', '192.0.2.2'],
    ['2001:db8:0:1::1', '2001:db8:0:2::1'],
    ['2001:db8:0:11::1', '2001:db8:1:1::1'],
  ])('of %s is not that of %s', (one, other) => expect(networkOf(one)).not.toBe(networkOf(other)));
});

test('a range without a prefix is one address', () => {
  expect(splitCidr('192.0.2.1')).toEqual({ network: '192.0.2.1', prefix: 32 });
  expect(splitCidr('2001:db8::1')).toEqual({ network: '2001:db8::1', prefix: 128 });
  expect(splitCidr('192.0.2.0/x')).toEqual({ network: '192.0.2.0', prefix: Number.NaN });
});

test('only these modules call ipaddr.js, whose parsers accept octal and hexadecimal numbers', () => {
  const users = listSourceFiles(['api', 'domain', 'platform', 'workers', 'activities', 'dev']).filter(
    (file) => readFileSync(file, 'utf8').includes("'ipaddr.js'"),
  );
  expect(users).toEqual([
    'domain/inbound/mail-authentication.ts',
    'platform/egress/address-policy.ts',
    'platform/network.ts',
  ]);
});
