import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { toAddressKey, toDomainKey, toListEntryKey } from '../../domain/mime/mail-address.ts';

describe('toAddressKey', () => {
  test.each([
    ['Ada@People.Example', 'ada@people.example'],
    ['ada+news@people.example', 'ada+news@people.example'],
    ['ada@people.example.', 'ada@people.example'],
    ['ada@Bücher.example', 'ada@xn--bcher-kva.example'],
    ['ada@xn--BCHER-kva.example', 'ada@xn--bcher-kva.example'],
    ['用户@例え.jp', '用户@xn--r8jz45g.jp'],
    ['ada@例え。jp', 'ada@xn--r8jz45g.jp'],
    ['ADÉLA@people.example', 'adéla@people.example'],
    ['ade\u0301la@people.example', 'adéla@people.example'],
    ["o'hara!#$%&'*/=?^`{|}~@people.example", "o'hara!#$%&'*/=?^`{|}~@people.example"],
  ])('normalizes %s to %s', (address, key) => expect(toAddressKey(address)).toBe(key));

  test.each([
    '',
    '@',
    'ada',
    'ada@',
    '@people.example',
    'ada@localhost',
    'ada@[192.0.2.1]',
    'ada@192.0.2.1',
    'ada @people.example',
    'a@b@people.example',
    '"a b"@people.example',
    'ada@people..example',
    'ada@people.example\r\nBcc: b@people.example',
    'Ada <ada@people.example>',
    'ada@-people.example',
    'ada@people%2eexample',
    'ada@people.example/x',
    'ada@people.example:25',
    `${'a'.repeat(65)}@p.example`,
    `ada@${'a.'.repeat(130)}example`,
  ])('rejects %j', (address) => expect(toAddressKey(address)).toBeNull());
});

describe('toListEntryKey', () => {
  test.each([
    ['People.Example', 'people.example'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['Ada@People.Example', 'ada@people.example'],
  ])('normalizes %s to %s', (entry, key) => expect(toListEntryKey(entry)).toBe(key));

  test.each(['com', '', '.', '*.people.example', '@people.example', 'people .example', '192.0.2.1', '::1'])(
    'rejects %j',
    (entry) => expect(toListEntryKey(entry)).toBeNull(),
  );
});

test('normalizing a key again does not change it', () => {
  const parts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: 'grapheme' }),
    fc.emailAddress(),
    fc.domain(),
  );
  fc.assert(
    fc.property(parts, fc.boolean(), (written, asAddress) => {
      const key = toListEntryKey(asAddress && !written.includes('@') ? `a@${written}` : written);
      if (key !== null) expect(toListEntryKey(key)).toBe(key);
    }),
    { numRuns: 2_000 },
  );
});

test('ignores case in addresses and domains', () => {
  fc.assert(
    fc.property(fc.emailAddress(), (address) => {
      expect(toAddressKey(address.toUpperCase())).toBe(toAddressKey(address.toLowerCase()));
    }),
  );
  fc.assert(
    fc.property(fc.domain(), (domain) => expect(toDomainKey(domain.toUpperCase())).toBe(toDomainKey(domain))),
  );
});
