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
  ])('%s', (_name, fields) => {
    expect(readAuthor(fields).isAmbiguous).toBe(true);
  });

  test.each([
    ['one address', ['CEO <ceo@bank.example>']],
    ['no From field', []],
    ['nothing but a name', ['Mailer']],
    ['two authors of one domain', ['a@bank.example, B <b@Bank.example>']],
    ['an internationalized domain', ['a@bücher.example']],
    ['an address in its display name', ['"x@evil.example" <ceo@bank.example>']],
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
  );
});
