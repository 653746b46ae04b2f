import { Readable } from 'node:stream';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { readAuthor } from '../../domain/mime/author.ts';
import { parseMail } from '../../domain/mime/parse-mail.ts';

describe('an author is ambiguous with', () => {
  test.each([
    ['two author domains', ['CEO <ceo@bank.example>, x@evil.example']],
    ['two From fields', ['ceo@bank.example', 'ceo@bank.example']],
    ['a broken second address', ['CEO <ceo@bank.example>, <x@>']],
    ['a second name without an address', ['ceo@bank.example, x']],
    ['a full-width letter in the domain', ['ceo@bａnk.example']],
    ['a full-width dot in the domain', ['ceo@bank。example']],
    ['a domain that IDNA does not allow', ['ceo@bank\u2063.ex ample\u200e']],
    ['two domains in a group', ['Us: a@bank.example, b@evil.example;']],
    ['two authors of one domain', ['a@bank.example, B <b@Bank.example>']],
    ['no From field', []],
    ['an empty field', ['']],
    ['nothing but a name', ['MAILER-DAEMON']],
    ['empty angle brackets', ['<>']],
    ['a group without members', ['Undisclosed:;']],
    ['two @', ['boss@bank.example@evil.example']],
    ['two @ in angle brackets', ['Boss <boss@bank.example@evil.example>']],
    ['a control character in the address', ['boss@bank\ufffd.example']],
    ['a control character before the @', ['boss\ufffd@bank.example']],
    ['an unterminated quote', ['"boss <boss@bank.example>']],
    ['an unterminated comment', ['boss@bank.example (the']],
    ['an unterminated angle bracket', ['Boss <boss@bank.example']],
    ['a closing bracket too many', ['Boss <boss@bank.example>> <x@evil.example>']],
    ['text after the address', ['<boss@bank.example> evil']],
    ['a name that is another address', ['boss@bank.example <x@evil.example>']],
    ['a domain literal that is no address', ['boss@[bank.example]']],
    ['an empty label in the domain', ['boss@bank..example']],
    ['a space within the domain', ['boss@bank example']],
    ['an encoded word as local part', ['=?utf-8?q?boss=40bank.example?=@evil.example']],
    ['a route without a domain', ['<x:boss@bank.example>']],
    ['a backslash in the domain', ['boss@bank\\.example']],
    ['more characters than are read', [`boss@bank.example${' '.repeat(10_000)}, x@evil.example`]],
  ])('%s', (_name, fields) => {
    expect(readAuthor(fields).isAmbiguous).toBe(true);
  });

  test.each([
    ['one address', ['CEO <ceo@bank.example>']],
    ['an internationalized domain', ['a@bücher.example']],
    ['an address in its display name', ['"x@evil.example" <ceo@bank.example>']],
    ['its own address as name, without quotes', ['CEO@bank.example <ceo@bank.example>']],
    ['a comma in its name, without quotes', ['Doe, Jane <jane@bank.example>']],
    ['a colon and brackets in its name, without quotes', ['[Bank] Support: Jane <jane@bank.example>']],
    ['an empty element', [', ceo@bank.example,']],
    ['a semicolon at the end', ['ceo@bank.example;']],
    ['a group of one', ['Board: ceo@bank.example;']],
    ['a comment', ['ceo(the boss)@bank.example (of the bank)']],
    ['a source route', ['<@relay.example:ceo@bank.example>']],
    ['a quoted local part', ['"the ceo"@bank.example']],
    ['a dot before the @, which providers gave out', ['ceo.@bank.example']],
    ['an IP address as domain', ['ceo@[192.0.2.1]']],
    ['a host without a domain', ['root@localhost']],
    ['a control character in its name', ['C\ufffdO <ceo@bank.example>']],
  ])('not with %s', (_name, fields) => {
    expect(readAuthor(fields).isAmbiguous).toBe(false);
  });
});

test('shows the first mailbox of the first From field', async () => {
  const source =
    'From: =?utf-8?q?J=C3=BCrgen?= <ceo@bank.example>, x@evil.example\r\nFrom: y@evil.example\r\n\r\nHi';
  const parsed = await parseMail(Readable.from([Buffer.from(source)]), {
    consumeFile: async () => undefined,
  });
  expect(parsed).toMatchObject({
    from: { email: 'ceo@bank.example', name: 'Jürgen' },
    isAuthorAmbiguous: true,
  });
});

test('reads any field without an error', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 3 }), (fields) => {
      const { from, isAmbiguous } = readAuthor(fields);
      expect(typeof isAmbiguous).toBe('boolean');
      if (from) expect(from.email).toContain('@');
    }),
    // Found by chance once: a `<` with a combining mark, so that the mark is the address.
    { examples: [[['-<\u0338']], [['Mail Delivery System <MAILER-DAEMON>']]] },
  );
});

test.each(['Mail Delivery System <MAILER-DAEMON>', 'MAILER-DAEMON', '-<\u0338'])(
  'finds no author in %s, which has no address',
  (field) => {
    expect(readAuthor([field])).toEqual({ from: null, isAmbiguous: true });
  },
);
