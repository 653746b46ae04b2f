import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { findAddressProblem } from '../../domain/mime/mail-address.ts';

test.each([
  'ann@example.test',
  'Ann.Lee+tag@sub.example.test',
  "!#$%&'*+-/=?^_`{|}~@example.test",
  'a@b',
  '1@1.test',
  `${'a'.repeat(64)}@example.test`,
  `a@${'b'.repeat(63)}.test`,
  'x@xn--bcher-kva.test',
])('accepts %j', (address) => {
  expect(findAddressProblem(address)).toBeUndefined();
});

test.each([
  ['', 'name@domain'],
  ['ann', 'name@domain'],
  ['@example.test', 'name@domain'],
  ['ann@', 'domain'],
  ['ann@@example.test', 'before the @'],
  ['.ann@example.test', 'before the @'],
  ['ann.@example.test', 'before the @'],
  ['a..b@example.test', 'before the @'],
  ['ann lee@example.test', 'before the @'],
  ['"unclosed@example.test', 'before the @'],
  ['"a"b"@example.test', 'before the @'],
  ['"quoted local"@example.test', 'quoted'],
  ['"with \\" and \\\\"@example.test', 'quoted'],
  ['<ann@example.test>', 'before the @'],
  ['ann@example.test>', 'domain'],
  ['ann@exa_mple.test', 'domain'],
  ['ann@-example.test', 'domain'],
  ['ann@example-.test', 'domain'],
  ['ann@example..test', 'domain'],
  ['ann@example.test.', 'domain'],
  [`ann@${'b'.repeat(64)}.test`, 'domain'],
  ['ann@[192.0.2.1]', 'IP address'],
  ['jürgen@example.test', 'SMTPUTF8'],
  ['ann@bücher.test', 'SMTPUTF8'],
  ['ann\r\n@example.test', 'control characters'],
  ['ann@example.test\n', 'control characters'],
  [`${'a'.repeat(65)}@example.test`, '64'],
  [`a@${'b.'.repeat(126)}test`, '254'],
])('rejects %j: %s', (address, explanation) => {
  expect(findAddressProblem(address)).toContain(explanation);
});

test('accepts only a line of ASCII without spaces', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc.constantFrom('@', '@example.test', ''),
      (text, end) => {
        const address = text + end;
        if (findAddressProblem(address) !== undefined) return;
        expect(address).toMatch(/^[\x20-\x7e]+$/);
        expect(address).not.toMatch(/[\s<>,;:()"]/);
      },
    ),
    { numRuns: 2000 },
  );
});
